// The DevTools protocol over a WebSocket: commands with their answers, and events by session.

// deno-lint-ignore no-explicit-any
export type Result = any;
type Listener = (method: string, params: Result) => void;

export interface Connection {
  send(method: string, params?: Result, sessionId?: string): Promise<Result>;
  listen(sessionId: string, listener: Listener): void;
  close(): Promise<void>;
}

export async function connect(url: string): Promise<Connection> {
  const socket = new WebSocket(url);
  const opened = Promise.withResolvers<void>();
  const closed = Promise.withResolvers<void>();
  socket.onopen = () => opened.resolve();
  socket.onclose = () => closed.resolve();
  const waiting = new Map<number, PromiseWithResolvers<Result>>();
  const listeners = new Map<string, Listener>();
  socket.onmessage = ({ data }) => {
    const { id, result, error, method, params, sessionId } = JSON.parse(data);
    if (id === undefined) return listeners.get(sessionId)?.(method, params);
    const waits = waiting.get(id);
    waiting.delete(id);
    if (error) waits?.reject(new Error(error.message));
    else waits?.resolve(result);
  };
  await opened.promise;
  let last = 0;
  return {
    send(method, params, sessionId) {
      const id = ++last;
      const waits = Promise.withResolvers<Result>();
      waiting.set(id, waits);
      socket.send(JSON.stringify({ id, method, params: params ?? {}, sessionId }));
      return waits.promise;
    },
    listen: (sessionId, listener) => void listeners.set(sessionId, listener),
    async close() {
      socket.close();
      await closed.promise;
    },
  };
}
