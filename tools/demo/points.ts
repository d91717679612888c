// The points that the shop gives with a purchase. They arrive seconds later, unless the user is
// refunded before: then the shop cancels them.
import { Conflict, type KenriClient } from "../../client/client.ts";
import type { Step } from "./story.ts";

export interface Gift {
  user: string;
  amount: number;
  reservationId: string;
}

const arrivesAfterMs = 3_000;

export class Points {
  readonly #kenri: KenriClient;
  readonly #gifts = new Map<string, Gift>(); // by user and item, of the last purchase
  readonly given = new Set<Gift>(); // each must arrive

  constructor(kenri: KenriClient) {
    this.#kenri = kenri;
  }

  // What the shop does about points after a change was made; nothing for most of them.
  follow({ action, fields }: Step): Promise<string | undefined> {
    if (action === "grants" && fields.reason === "purchase") return this.#give(fields);
    if (action === "revokes" && fields.reason === "refund") return this.#takeBack(fields);
    return Promise.resolve(undefined);
  }

  async #give({ user_id, stock_keeping_unit, purchase_id }: Step["fields"]): Promise<string> {
    const amount = 10 * (1 + Math.floor(Math.random() * 9));
    const { reservation } = await this.#kenri.reservePoints(`${purchase_id}-points`, {
      user_id,
      point_amount: amount,
      execute_at: new Date(Date.now() + arrivesAfterMs).toISOString(),
      reason: "purchase",
      source_id: purchase_id,
    });
    const gift = { user: user_id, amount, reservationId: reservation.reservation_id };
    this.#gifts.set(`${user_id} ${stock_keeping_unit}`, gift);
    this.given.add(gift);
    return `+${amount} in ${arrivesAfterMs / 1_000} s`;
  }

  async #takeBack({ user_id, stock_keeping_unit }: Step["fields"]): Promise<string | undefined> {
    const gift = this.#gifts.get(`${user_id} ${stock_keeping_unit}`);
    if (!gift) return undefined;
    this.#gifts.delete(`${user_id} ${stock_keeping_unit}`);
    try {
      await this.#kenri.cancelReservation(gift.reservationId);
      this.given.delete(gift);
      return `+${gift.amount} cancelled`;
    } catch (error) {
      if (!(error instanceof Conflict)) throw error;
      return `+${gift.amount} stay: ${error.message}`;
    }
  }

  expectedOf(user: string): number {
    return sum([...this.given].filter((gift) => gift.user === user).map(({ amount }) => amount));
  }

  async balanceOf(user: string): Promise<number> {
    const { balances } = await this.#kenri.listBalances(user);
    return sum(balances.map(({ balance }) => balance));
  }
}

export function sum(amounts: number[]): number {
  return amounts.reduce((sum, amount) => sum + amount, 0);
}
