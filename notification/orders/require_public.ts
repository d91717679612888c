import { apiError, senderNotConfigured } from "../errors.ts";
import { type Sender, SenderUnavailable } from "./sender_client.ts";

// A url that a caller gives is judged by the sender, whose settings say where it may send.

export const notPublic = {
  ADDRESS_BLOCKED: "url must not lead to an address that is not public",
};

// The sender judges again at each send, when it resolves the name. So nothing has to wait for a sender
// that can't be reached.
export async function requirePublic(sender: Sender | undefined, url: string): Promise<void> {
  if (!sender) throw senderNotConfigured();
  try {
    const refused = await sender.check(url);
    if (refused) throw apiError("ADDRESS_BLOCKED", refused.message);
  } catch (error) {
    if (!(error instanceof SenderUnavailable)) throw error;
  }
}
