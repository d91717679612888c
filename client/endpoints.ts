import type { Answered } from "./answers.ts";
import { type CallOptions, type PageOptions, query, type Requests } from "./requests.ts";

// Endpoints: where events are sent as signed webhooks.

export interface NewEndpoint {
  /** https, on a public address. */
  url: string;
  /** The names of the events that are sent, such as `PointsAdded`; by default all. */
  event_types?: string[] | null;
  /** What must have ended before the next webhook is sent; by default `key`. */
  ordering?: "none" | "key" | "endpoint" | null;
  description?: string | null;
  /** The most webhooks that are sent at the same time; the default is a setting of the service. */
  at_once?: number | null;
  /** Only the events of this user; by default those of all users. */
  user_id?: string | null;
}

/** Fields that are absent stay as they are. */
export type EndpointChange = Partial<NewEndpoint>;

export type EndpointState = "ACTIVE" | "PAUSED" | "FAILING" | "DISABLED" | "GONE";

export interface Endpoint {
  endpoint_id: string;
  url: string;
  event_types: string[] | null;
  user_id: string | null;
  ordering: "none" | "key" | "endpoint";
  at_once: number;
  description: string | null;
  /** Webhooks are sent while it is `ACTIVE`, and parked in every other state. */
  state: EndpointState;
  state_since: string;
  /** It is `ACTIVE` again, and what was parked is being sent. */
  is_draining: boolean;
  failures: number;
  failing_since: string | null;
  next_probe_at: string | null;
  last_success_at: string | null;
  last_failure_at: string | null;
  last_reason: string | null;
  created_at: string;
  updated_at: string;
}

export interface Endpoints {
  endpoints: Endpoint[];
  /** Present if there are more. */
  next_cursor?: string;
}

/** The service's answer to a new endpoint. */
export interface CreatedEndpoint extends Answered, Endpoint {
  /** Absent in a repeated answer: it is shown only once. `rotateSecret` makes a new one. */
  secret?: string;
}

/** The service's answer to a rotation. */
export interface RotatedSecret extends Answered {
  endpoint_id: string;
  /** Absent in a repeated answer. */
  secret?: string;
  /** Until then, each webhook also has a signature of each secret from before. */
  old_secrets_end_at: string;
}

/** A test is an order, which `findOrder` finds. */
export interface EndpointTest extends Answered {
  order_id: string;
  status: "PENDING" | "PARKED";
}

export interface NewReplay {
  /** Orders that were made at this time or later: RFC 3339 with an offset. */
  from: string;
  /** Orders that were made before this time. */
  to: string;
  event_types?: string[] | null;
  /** `FAILED`: those that were given up. `ALL`: also those that succeeded. */
  only: "FAILED" | "ALL";
  /** Only count them. */
  dry_run?: boolean | null;
}

/** One batch of a replay. */
export interface Replayed {
  /** null if it changed nothing. */
  operation_id: string | null;
  found: number;
  replayed: number;
  complete: boolean;
  /** Present unless it is complete. */
  next_cursor?: string;
}

export interface EndpointAttempt {
  order_id: string;
  /** null for an order that is no event. */
  event_id: string | null;
  event_type: string | null;
  outcome: string;
  /** Why it failed. */
  reason_code: string | null;
  begun_at: string | null;
  ended_at: string;
  request_headers: Record<string, string> | null;
  http_status: number | null;
  response_headers: Record<string, string> | null;
  /** The first 4 KiB. */
  response_body: string | null;
}

export interface EndpointAttempts {
  attempts: EndpointAttempt[];
  /** Present if there are more. */
  next_cursor?: string;
}

export interface EndpointsClient {
  /**
   * Registers a url for webhooks. Store the `secret` of the answer: no other call shows it. A repeated
   * call with the same key makes no second endpoint.
   */
  createEndpoint(
    key: string,
    endpoint: NewEndpoint,
    options?: CallOptions,
  ): Promise<CreatedEndpoint>;
  /** A page of the endpoints of this caller, the newest first. */
  listEndpoints(options?: PageOptions): Promise<Endpoints>;
  findEndpoint(endpointId: string, options?: CallOptions): Promise<Endpoint>;
  /** Fields that are absent stay as they are; null brings the default back. */
  changeEndpoint(
    endpointId: string,
    change: EndpointChange,
    options?: CallOptions,
  ): Promise<Endpoint>;
  /** What was not sent yet ends with `ENDPOINT_DELETED`. A repeated call throws `NOT_FOUND`. */
  deleteEndpoint(endpointId: string, options?: CallOptions): Promise<void>;
  /** Webhooks wait until `resumeEndpoint`. */
  pauseEndpoint(endpointId: string, options?: CallOptions): Promise<Endpoint>;
  /** From each other state it becomes `ACTIVE`, and what waited is sent, the oldest first. */
  resumeEndpoint(endpointId: string, options?: CallOptions): Promise<Endpoint>;
  /** Sends a webhook of the type `EndpointTest`. */
  testEndpoint(key: string, endpointId: string, options?: CallOptions): Promise<EndpointTest>;
  /** The overlap is a duration such as `24h`, which is the default; with `0s` the old secret ends now. */
  rotateSecret(
    key: string,
    endpointId: string,
    options?: CallOptions & { overlap?: string },
  ): Promise<RotatedSecret>;
  /**
   * Sends webhooks again, the oldest first and with the same ids, in as many batches as it takes. A
   * repeated call with the same key sends nothing a third time.
   */
  replayEndpoint(
    key: string,
    endpointId: string,
    replay: NewReplay,
    options?: CallOptions,
  ): Promise<{ found: number; replayed: number }>;
  /** A page of what was sent and what the receiver answered, the newest first. */
  listEndpointAttempts(endpointId: string, options?: PageOptions): Promise<EndpointAttempts>;
}

export function endpointsClient(requests: Requests): EndpointsClient {
  const path = (id: string, action = "") => `/v1/endpoints/${encodeURIComponent(id)}${action}`;
  const post = async <Answer extends Answered>(
    url: string,
    key: string,
    fields: object | undefined,
    call: CallOptions | undefined,
  ): Promise<Answer> => {
    const { body, ...answered } = await requests.post<object>(url, key, fields, call);
    return { ...body, ...answered } as Answer;
  };
  // These may be repeated without a key: the second one changes nothing.
  const set = (id: string, action: string, call: CallOptions | undefined): Promise<Endpoint> =>
    requests.send("POST", path(id, action), undefined, call);
  return {
    createEndpoint: (key, endpoint, call) => post("/v1/endpoints", key, endpoint, call),
    listEndpoints: ({ limit, cursor, ...call } = {}) =>
      requests.get(`/v1/endpoints${query({ limit, cursor })}`, call),
    findEndpoint: (id, call) => requests.get(path(id), call),
    changeEndpoint: (id, change, call) => requests.send("PATCH", path(id), change, call),
    deleteEndpoint: (id, call) => requests.delete(path(id), call),
    pauseEndpoint: (id, call) => set(id, "/pause", call),
    resumeEndpoint: (id, call) => set(id, "/resume", call),
    testEndpoint: (key, id, call) => post(path(id, "/test"), key, undefined, call),
    rotateSecret: (key, id, { overlap, ...call } = {}) =>
      post(path(id, "/rotate-secret"), key, overlap === undefined ? {} : { overlap }, call),
    replayEndpoint: async (key, id, replay, call) => {
      const sum = { found: 0, replayed: 0 };
      let cursor: string | undefined;
      for (let batch = 1;; batch++) {
        const ofBatch = batch === 1 ? key : `${key}-${batch}`;
        const fields = cursor === undefined ? replay : { ...replay, cursor };
        const { body } = await requests.post<Replayed>(path(id, "/replay"), ofBatch, fields, call);
        sum.found += body.found;
        sum.replayed += body.replayed;
        if (body.complete || body.next_cursor === undefined) return sum;
        cursor = body.next_cursor;
      }
    },
    listEndpointAttempts: (id, { limit, cursor, ...call } = {}) =>
      requests.get(path(id, "/attempts") + query({ limit, cursor }), call),
  };
}
