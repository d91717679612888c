/** The message can't be decoded, and redelivering it does not help. */
export class UnreadableMessage extends Error {
  override readonly name = "UnreadableMessage";
}
