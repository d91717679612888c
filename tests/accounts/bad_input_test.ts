// What the account service refuses: one error shape, a message that names the field, and nothing stored.
import assert from "node:assert/strict";
import { type Account, resolve, send, startAccount } from "../support/account.ts";
import { assertError } from "../support/api.ts";

let account: Account;
let user: string;
Deno.test.beforeAll(async () => {
  account = await startAccount();
  user = (await resolve(account, identity)).user_id;
});
Deno.test.afterAll(() => account.close());

const identity = { provider: "https://issuer.example", subject: "ann" };
const soon = new Date(Date.now() + 60_000).toISOString();

async function leavesNoTrace(work: () => Promise<void>): Promise<void> {
  const stored = () =>
    account.rows(
      `select (select count(*) from users) as users, (select count(*) from identities) as identities,
         (select json_agg(users) from users) as all_users,
         (select count(*) from audit_logs) as audit, (select count(*) from outbox_events) as events,
         (select count(*) from ended_sessions) as sessions`,
    );
  const before = await stored();
  await work();
  assert.deepEqual(await stored(), before);
  assert.deepEqual(account.service.log.filter(({ level }) => level === "error"), []);
}

type Refused = [method: string, path: string, body: unknown, message: string];

async function areRefused(all: Refused[], code = "BAD_REQUEST"): Promise<void> {
  await leavesNoTrace(async () => {
    for (const [method, path, body, message] of all) {
      assertError(await send(method, account.url + path, body), 400, code, message);
    }
  });
}

// What is wrong with the value of a field that takes a text.
const badTexts: [value: unknown, problem: string][] = [
  ["", "is required"],
  [" \t ", "is required"],
  [7, "must be a string"],
  [{}, "must be a string"],
  [["ann"], "must be a string"],
  ["a\0b", "must not have control characters"],
  ["a\nb", "must not have control characters"],
  ["\u{7f}", "must not have control characters"],
  ["\ud800", "must be well-formed Unicode"],
  ["x".repeat(256), "must have at most 255 characters"],
  ["😀".repeat(256), "must have at most 255 characters"],
];

Deno.test("an identity with a bad field is refused", async () => {
  const path = "/v1/identities:resolve";
  const post = (fields: unknown, message: string): Refused => ["POST", path, fields, message];
  const bad = ["provider", "subject", "email", "name"].flatMap((field) =>
    badTexts.map(([value, problem]) => post({ ...identity, [field]: value }, `${field} ${problem}`))
  );
  const notUrl = "picture must be an http or https url";
  await areRefused([
    ...bad,
    post({}, "provider is required; subject is required"),
    post({ provider: null, subject: "s" }, "provider is required"),
    post({ ...identity, email_verified: "yes" }, "email_verified must be true or false"),
    ...["x", "/ann.png", "javascript:alert(1)", "data:image/png;base64,AA", "ftp://a/b", ""].map(
      (picture) => post({ ...identity, picture }, notUrl),
    ),
    post({ ...identity, picture: 7 }, notUrl),
    post(
      { ...identity, picture: "https://a.example/\0" },
      "picture must not have control characters",
    ),
    post(
      { ...identity, picture: `https://a.example/${"x".repeat(2_048)}` },
      "picture must have at most 2048 characters",
    ),
    ...["[]", "null", '"x"', "7"].map((text) => post(text, "request body is invalid")),
    ...["{", '{"provider":', "\xff"].map((text) => post(text, "request body is invalid")),
  ]);
});

Deno.test("a profile with a bad field is refused, whether or not the account exists", async () => {
  const paths = [user, crypto.randomUUID(), "ann"].map((id) => `/v1/users/${id}`);
  await areRefused(
    paths.flatMap((path) =>
      ["display_name", "locale"].flatMap((field) =>
        badTexts.map(([value, problem]): Refused => [
          ...["PATCH", path, { [field]: value }, `${field} ${problem}`] as const,
        ])
      )
    ),
  );
});

Deno.test("bad reasons and roles are refused", async () => {
  const path = `/v1/users/${user}`;
  await areRefused([
    ...["suspend", "resume"].flatMap((verb) =>
      badTexts.map(([reason, problem]): Refused => [
        ...["POST", `${path}:${verb}`, { reason }, `reason ${problem}`] as const,
      ])
    ),
    ["POST", `${path}:suspend`, {}, "reason is required"],
    ["PUT", `${path}/roles`, {}, "roles must be a list of roles"],
    ["PUT", `${path}/roles`, { roles: "ADMIN" }, "roles must be a list of roles"],
    ["PUT", `${path}/roles`, { roles: null }, "roles must be a list of roles"],
    ["PUT", `${path}/roles`, { roles: Array(21).fill("USER") }, "roles must have at most 20 roles"],
  ]);
  const unknown = "roles must be of USER, SUPPORT, ADMIN";
  const lists = [["user"], ["USER", "OWNER"], [""], ["ADMIN "], ["__proto__"], ["\0"]];
  await areRefused(
    lists.map((roles) => ["PUT", `${path}/roles`, { roles }, unknown]),
    "ROLE_UNKNOWN",
  );
  const typed = await send("PUT", `${account.url}${path}/roles`, { roles: [7] });
  assert.match(typed.json.message, /^roles\.0 /);
  assert.equal(typed.status, 400);
});

Deno.test("the end of a session that can't be one is refused", async () => {
  const post = (id: string, fields: unknown, message: string): Refused => [
    ...["POST", `/v1/sessions/${id}:end`, fields, message] as const,
  ];
  const id = crypto.randomUUID();
  const notTime = "must be an existing time with an offset, such as 2026-01-02T03:04:05+09:00";
  await areRefused([
    ...["x", `${id}x`, "%00", "%F0%9F%98%80"].map((bad) =>
      post(bad, { user_id: user, expires_at: soon }, "session_id must be a UUID")
    ),
    post(id, { user_id: user }, "expires_at is required"),
    post(id, { expires_at: soon }, "user_id is required"),
    ...["soon", "2026-02-30T00:00:00Z", "2026-01-01T00:00:00", 7, "0000-01-01T00:00:00Z"].map(
      (expires_at) => post(id, { user_id: user, expires_at }, `expires_at ${notTime}`),
    ),
    post(
      id,
      { user_id: user, expires_at: "9999-12-31T23:59:59Z" },
      "expires_at must be within 400 days",
    ),
    ["POST", "/v1/identities:end-sessions", { subject: "s" }, "provider is required"],
    [
      ...["POST", "/v1/identities:end-sessions"] as const,
      ...[{ ...identity, session_id: "x" }, "session_id must be a UUID"] as const,
    ],
    [
      ...["POST", "/v1/identities:end-sessions"] as const,
      { ...identity, session_id: id, expires_at: "9999-12-31T23:59:59Z" },
      "expires_at must be within 400 days",
    ],
  ]);
});

Deno.test("bad queries are refused", async () => {
  const id = crypto.randomUUID();
  const get = (path: string, message: string): Refused => ["GET", path, undefined, message];
  const notCursor = "cursor must be a next_cursor of this service";
  const lists = [`/v1/users/${user}/audit?`, "/v1/sessions/ended?"];
  await areRefused([
    ...lists.flatMap((list) => [
      get(`${list}limit=0`, "limit must be at least 1"),
      get(`${list}limit=201`, "limit must be at most 200"),
      get(`${list}limit=1.5`, "limit must be a whole number"),
      get(`${list}limit=x`, "limit must be a number"),
      ...["x", "WzFd", btoa('["2026-01-01T00:00:00Z","x"]'), btoa('["0000",1]')].map((cursor) =>
        get(`${list}cursor=${cursor}`, notCursor)
      ),
    ]),
    get(
      "/v1/sessions/ended?since=yesterday",
      "since must be an existing time with an offset, such as 2026-01-02T03:04:05+09:00",
    ),
    get(`/v1/sessions/${id}`, "user_id is required"),
    get(`/v1/sessions/${id}?user_id=ann`, "user_id must be a UUID"),
    get(`/v1/sessions/x?user_id=${user}`, "session_id must be a UUID"),
    get("/v1/users/%ff", "user_id must be percent-encoded UTF-8"),
  ]);
});

Deno.test("an id that no account can have is unknown, whatever it looks like", async () => {
  await leavesNoTrace(async () => {
    for (
      const id of ["ann", "%00", "x".repeat(2_000), `${user}0`, "..%2f..", "%F0%9F%98%80", "'"]
    ) {
      const answers = [
        await send("GET", `${account.url}/v1/users/${id}`),
        await send("GET", `${account.url}/v1/users/${id}/audit`),
        await send("PATCH", `${account.url}/v1/users/${id}`, { locale: "en" }),
        await send("POST", `${account.url}/v1/users/${id}:suspend`, { reason: "spam" }),
        await send("PUT", `${account.url}/v1/users/${id}/roles`, { roles: [] }),
        await send("POST", `${account.url}/v1/users/${id}/sessions:end`),
      ];
      for (const answer of answers) assertError(answer, 404, "NOT_FOUND", "user not found");
    }
  });
});

Deno.test("the longest texts are stored as they are", async () => {
  const longest = "😀".repeat(255);
  const picture = `https://a.example/${"x".repeat(2_030)}`;
  const fields = { provider: longest, subject: longest, email: longest, name: longest, picture };
  const { user_id } = await resolve(account, fields);
  assert.equal((await resolve(account, fields)).user_id, user_id);
  const { json } = await send("GET", `${account.url}/v1/users/${user_id}`);
  assert.equal(json.display_name, longest);
});

Deno.test("a verb that does not exist is unknown, and other methods are refused", async () => {
  const path = `${account.url}/v1/users/${user}`;
  assertError(await send("POST", `${path}:delete`, {}), 405, "METHOD_NOT_ALLOWED");
  assertError(await send("GET", `${path}:suspend`), 405, "METHOD_NOT_ALLOWED");
  assertError(await send("DELETE", path), 405, "METHOD_NOT_ALLOWED");
  assertError(
    await send("POST", `${account.url}/v1/sessions/ended`, {}),
    405,
    "METHOD_NOT_ALLOWED",
  );
  assertError(await send("POST", `${account.url}/v1/identities:delete`, {}), 404, "NOT_FOUND");
});
