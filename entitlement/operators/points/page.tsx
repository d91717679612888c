import type { JSX } from "hono/jsx/jsx-runtime";
import { pageAnswer } from "@kenri/shared/console/answers.ts";
import { type Api, queryOf, type ShowPage } from "@kenri/shared/console/ask.ts";
import {
  ConsolePage,
  Facts,
  NextPage,
  type Site,
  State,
  Status,
  Table,
  When,
} from "@kenri/shared/console/layout.tsx";
import { EventLink, SearchField, TimelineLink } from "@kenri/shared/console/search.tsx";
import { age, whole } from "@kenri/shared/console/text.ts";
import { WaitingTable } from "@kenri/shared/console/waiting_table.tsx";
import type { OutboxStatus } from "../status.ts";
import type { PointsOfUser } from "./points_of_user.ts";
import type { ReservationLook } from "./reservations.ts";
import type { Upcoming } from "./upcoming.ts";

// The points of a user, and the reservations that are due: those that are late, and the next ones.

export const pointsPath = "/console/points";

const upcomingShown = "20";

export function pointsPage(site: Site): ShowPage {
  return async (context, api) => {
    const { req } = context;
    const user_id = req.query("user_id") ?? "";
    const [unit, cursor] = [req.query("unit") || undefined, req.query("cursor")];
    const found = user_id === ""
      ? <Reservations site={site} {...await readReservations(api)} />
      : (
        <OfUser
          site={site}
          unit={unit}
          user={await api.get("/debug/entitlement/points/user", { user_id, unit, cursor })}
        />
      );
    return pageAnswer(
      context,
      <ConsolePage site={site} path={pointsPath} title="Points">
        <form class="search" method="get" action={pointsPath} role="search">
          <SearchField id="user_id" label="User id" value={user_id} maxlength={255} />
          <button type="submit">Find</button>
        </form>
        {found}
      </ConsolePage>,
    );
  };
}

interface Due {
  reservations: OutboxStatus["reservations"];
  next: ReservationLook[];
}

async function readReservations(api: Api): Promise<Due> {
  const [{ reservations }, upcoming] = await Promise.all([
    api.get<OutboxStatus>("/debug/entitlement/status"),
    api.get<Upcoming>("/debug/entitlement/points/upcoming", { limit: upcomingShown }),
  ]);
  return { reservations, next: upcoming.reservations };
}

function Reservations({ site, reservations, next }: Due & { site: Site }): JSX.Element {
  const { waiting, oldest_waiting_seconds, upcoming, next_due_at, oldest } = reservations;
  return (
    <>
      <Facts
        facts={[
          ["due and waiting", whole(waiting)],
          ["oldest", age(oldest_waiting_seconds)],
          ["to come", upcoming < 10_000 ? whole(upcoming) : `${whole(upcoming)} or more`],
          ["next", <When at={next_due_at} />],
        ]}
      />
      <h2>Late</h2>
      <WaitingTable noun="due reservation" rows={oldest} />
      <h2>Due next</h2>
      <ReservationTable
        site={site}
        label="Reservations to come, the soonest first"
        reservations={next}
        none="No reservation is to come."
      />
    </>
  );
}

function OfUser(
  { site, user, unit }: { site: Site; user: PointsOfUser; unit: string | undefined },
): JSX.Element {
  const { user_id, balances, reservations, transactions, next_cursor } = user;
  const here = (more: Record<string, string | undefined>) =>
    `${pointsPath}${queryOf({ user_id, ...more })}`;
  return (
    <>
      <h2>Balances</h2>
      <Table
        label={`Balances of ${user_id}`}
        columns={["Unit", "Balance", "Version", "Changed"]}
        rows={balances.map(({ unit, balance, version, updated_at }) => [
          <a href={here({ unit })}>{unit}</a>,
          whole(balance),
          whole(version),
          <When at={updated_at} />,
        ])}
        none="This user has no balance."
      />
      <h2>Reserved</h2>
      <ReservationTable
        site={site}
        label={`Reservations of ${user_id} since yesterday, the soonest first`}
        reservations={reservations}
        ofOneUser
        none="Nothing is reserved for this user, and nothing was due since yesterday."
      />
      <h2>Statement{unit && ` in ${unit}`}</h2>
      {unit && (
        <p>
          <a href={here({})}>All units</a>
        </p>
      )}
      <Statement user_id={user_id} transactions={transactions} />
      <NextPage href={next_cursor && here({ unit, cursor: next_cursor })} />
    </>
  );
}

function Statement({ user_id, transactions }: Pick<PointsOfUser, "user_id" | "transactions">) {
  return (
    <Table
      label={`Transactions of ${user_id}, the newest first`}
      columns={["Time", "Points", "Unit", "Balance", "Version", "Reason", "Source", "Event"]}
      rows={transactions.map((row) => [
        <When at={row.created_at} />,
        `${row.point_amount > 0 ? "+" : ""}${whole(row.point_amount)}`,
        row.unit,
        whole(row.balance_after),
        whole(row.version),
        row.reason,
        row.source_id,
        <EventLink id={row.transaction_id} />,
      ])}
      none="There are no transactions."
    />
  );
}

interface TableParts {
  site: Site;
  label: string;
  reservations: ReservationLook[];
  none: string;
  ofOneUser?: boolean;
}

function ReservationTable(
  { site, label, reservations, none, ofOneUser = false }: TableParts,
): JSX.Element {
  const user = <Cell,>(shown: Cell) => ofOneUser ? [] : [shown];
  return (
    <Table
      label={label}
      columns={["Due", ...user("User"), "What", "State", "Attempts", "Reservation", "Error"]}
      rows={reservations.map((row) => [
        <When at={row.due_at} />,
        ...user(<a href={`${pointsPath}${queryOf({ user_id: row.user_id })}`}>{row.user_id}</a>),
        row.kind === "POINTS"
          ? `+${whole(row.point_amount ?? 0)} ${row.unit}`
          : `${row.kind} ${row.stock_keeping_unit}`,
        row.status === "PENDING" && row.attempt_count === 0
          ? <State tone="muted" word="PENDING" />
          : <Status site={site} status={row.status} />,
        row.attempt_count,
        <TimelineLink of={row} />,
        <span class="error">{row.last_error ?? "–"}</span>,
      ])}
      none={none}
    />
  );
}
