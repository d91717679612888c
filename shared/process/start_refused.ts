// The service can't run with its present setup, and trying again would not help. It ends with exit
// code 1.
export class StartRefused extends Error {
  override readonly name = "StartRefused";
}
