// What is wrong with settings.
import { SettingsError } from "../../shared/process/settings.ts";

export type Given = Record<string, string | undefined>;

export function problemsWhen(readSettings: () => unknown): string[] {
  try {
    readSettings();
    return [];
  } catch (error) {
    if (error instanceof SettingsError) return error.problems;
    throw error;
  }
}
