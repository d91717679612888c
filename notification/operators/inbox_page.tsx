import { pageAnswer } from "@kenri/shared/console/answers.ts";
import { queryOf, type ShowPage } from "@kenri/shared/console/ask.ts";
import {
  ConsolePage,
  Json,
  NextPage,
  type Site,
  Status,
  Table,
  When,
} from "@kenri/shared/console/layout.tsx";
import { EventLink, SearchField } from "@kenri/shared/console/search.tsx";
import type { JSX } from "hono/jsx/jsx-runtime";
import type { Inbox } from "../list_notifications.ts";

// The notifications of a user, sent or not.

export const inboxPath = "/console/inbox";

export function inboxPage(site: Site): ShowPage {
  return async (context, api) => {
    const { req } = context;
    const user_id = req.query("user_id") ?? "";
    const found = user_id === "" ? undefined : await api.get<Inbox>(
      `/debug/notification/inbox/${encodeURIComponent(user_id)}`,
      { cursor: req.query("cursor") },
    );
    return pageAnswer(
      context,
      <ConsolePage site={site} path={inboxPath} title="Inbox">
        <form class="search" method="get" action={inboxPath} role="search">
          <SearchField id="user_id" label="User id" value={user_id} maxlength={255} />
          <button type="submit">Find</button>
        </form>
        {found && <Notifications site={site} inbox={found} />}
      </ConsolePage>,
    );
  };
}

function Notifications({ site, inbox }: { site: Site; inbox: Inbox }): JSX.Element {
  const { user_id, notifications, next_cursor } = inbox;
  return (
    <>
      <Table
        label={`Notifications of ${user_id}, the newest first`}
        columns={["Received", "Type", "State", "Sent", "Attempts", "Event", "Payload"]}
        rows={notifications.map((notification) => [
          <When at={notification.created_at} />,
          <span class="word">{notification.type}</span>,
          <Status site={site} status={notification.status} />,
          <When at={notification.sent_at} />,
          notification.attempt_count,
          <EventLink id={notification.event_id} />,
          <details>
            <summary>Show</summary>
            <Json value={notification.payload} label="Payload" />
          </details>,
        ])}
        none="This user has no notifications."
      />
      <NextPage href={next_cursor && `${inboxPath}${queryOf({ user_id, cursor: next_cursor })}`} />
    </>
  );
}
