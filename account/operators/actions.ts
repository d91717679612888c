import type { AccountLook } from "./find_accounts.ts";

// What the console offers to do with an account. Each has the name of its route.

export interface Action {
  name: string;
  title: string;
  effect: string; // in a sentence
  isFor(account: AccountLook): boolean;
}

export const actions: Action[] = [
  {
    name: "suspend",
    title: "Suspend",
    effect: "All sessions of the user are refused until the account is resumed.",
    isFor: ({ status }) => status === "ACTIVE",
  },
  {
    name: "resume",
    title: "Resume",
    effect: "The sessions of the user work again.",
    isFor: ({ status }) => status === "SUSPENDED",
  },
  {
    name: "end-sessions",
    title: "End all sessions",
    effect: "The user has to log in again, on every device.",
    isFor: () => true,
  },
  {
    name: "roles",
    title: "Set roles",
    effect: "Roles that are not chosen are taken away.",
    isFor: () => true,
  },
];
