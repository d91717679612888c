/** The arguments of `deno run …` with a module that runs before the program, and may read one more variable. */
export function preloading(module: string, variable: string, args: string[]): string[] {
  const [run = "", ...others] = args;
  const allow = `--allow-env=${variable},`;
  return [
    run,
    `--preload=${module}`,
    ...others.map((flag) => flag.replace(/^--allow-env=/, allow)),
  ];
}
