/** The header in which a WebSocket offers subprotocols, the only one that a browser lets its page write. */
const OFFERED = 'sec-websocket-protocol';

/** OpenAI's way for a page to say its key, and which account it is for. */
const KEY = /^openai-insecure-api-key\.(.+)$/;
const ACCOUNT = /^openai-(?:organization|project)\./;

/** Reads the keys that stand among the subprotocols of a WebSocket. */
export function keysInSubprotocols(headers: Headers): readonly string[] {
  return offered(headers).flatMap((each) => KEY.exec(each)?.[1] ?? []);
}

/** Takes keys out that are to leave, in place, and with them what says whose account they are for. */
export function dropSubprotocols(headers: Headers, leaves: (key: string) => boolean): void {
  const all = offered(headers);
  const isGone = (each: string): boolean => {
    const [, key] = KEY.exec(each) ?? [];
    return key !== undefined && leaves(key);
  };
  if (!all.some(isGone)) return;
  const theirs = all.filter((each) => !KEY.test(each) && !ACCOUNT.test(each));
  if (theirs.length === 0) headers.delete(OFFERED);
  else headers.set(OFFERED, theirs.join(', '));
}

/** Removes, in place, the subprotocols that select an account, and returns their names without the account. */
export function dropAccountSubprotocols(headers: Headers): readonly string[] {
  const all = offered(headers);
  const gone = all.filter((each) => ACCOUNT.test(each));
  if (gone.length === 0) return [];
  const theirs = all.filter((each) => !ACCOUNT.test(each));
  if (theirs.length === 0) headers.delete(OFFERED);
  else headers.set(OFFERED, theirs.join(', '));
  return gone.map((each) => each.slice(0, each.indexOf('.')));
}

function offered(headers: Headers): readonly string[] {
  const text = headers.get(OFFERED);
  return text === null ? [] : text.split(',').map((each) => each.trim());
}
