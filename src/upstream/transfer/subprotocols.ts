/** The header in which a WebSocket offers subprotocols. It is the only one that a browser lets its page set. */
const OFFERED = 'sec-websocket-protocol';

/** The subprotocols in which OpenAI accepts a page's key and the account that it belongs to. */
const KEY = /^openai-insecure-api-key\.(.+)$/i;
const ACCOUNT = /^openai[_-](?:organization|project)\./i;

export function keysInSubprotocols(headers: Headers): readonly string[] {
  return offered(headers).flatMap((each) => KEY.exec(each)?.[1] ?? []);
}

/** The subprotocol of a connection that Headgate accepts itself. null if the client offers none but keys. */
export function acceptedSubprotocol(headers: Headers): string | null {
  const all = offered(headers).filter((each) => each !== '');
  return all.find((each) => !KEY.test(each) && !ACCOUNT.test(each)) ?? null;
}

/** Removes matching keys in place, together with the subprotocols that select their account. */
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

/**
 * Removes, in place, the subprotocols that select an account or control a gateway, as in `openai-organization.org-1`.
 * Returns their names without the account.
 */
export function dropAccountSubprotocols(
  headers: Headers,
  isSelector: (name: string) => boolean,
): readonly string[] {
  const all = offered(headers);
  const isGone = (each: string): boolean =>
    each.includes('.') && isSelector(nameOf(each).toLowerCase());
  const gone = all.filter(isGone);
  if (gone.length === 0) return [];
  const theirs = all.filter((each) => !isGone(each));
  if (theirs.length === 0) headers.delete(OFFERED);
  else headers.set(OFFERED, theirs.join(', '));
  return gone.map(nameOf);
}

function nameOf(subprotocol: string): string {
  return subprotocol.slice(0, subprotocol.indexOf('.'));
}

function offered(headers: Headers): readonly string[] {
  const text = headers.get(OFFERED);
  return text === null ? [] : text.split(',').map((each) => each.trim());
}
