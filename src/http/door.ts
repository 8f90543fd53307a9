// Rejects requests before it is known whether they are calls or for Headgate's own routes.

import { SERVED_METHODS } from '../contract/http.ts';
import type { ErrorReply } from '../contract/reasons.ts';
import { isolateConfig } from '../config/isolate-config.ts';
import { calledUrl } from '../call/request/call.ts';
import { errorShape } from '../call/request/choose-path.ts';
import type { RefusedRequest } from '../call/observe/note-refusal.ts';
import { rejectedResponse } from '../call/answer/respond.ts';
import { rejected } from '../call/results/result.ts';
import { MALFORMED_PATH, malformedReply, unservedMethod } from './malformed.ts';

const SERVED: ReadonlySet<string> = new Set(SERVED_METHODS);

/** Whether the first segment of a URL belongs to Headgate's own routes. */
type OwnUrlTest = (url: string) => boolean;

/** Rejects a request that is not served, whatever its route. Returns null if it is served. */
export function refusedAtDoor(
  method: string,
  asked: RefusedRequest,
  isOwn: OwnUrlTest,
): Response | null {
  const { url } = asked.request;
  const { ALLOWED_HOSTS: hosts } = asked.env;
  if (!SERVED.has(method)) return errorAt(url, unservedMethod(), asked, isOwn);
  if (hosts === undefined || isAllowed(url, hosts)) return null;
  const message =
    'The `Host` header names a host that this Headgate does not serve. It listens only on this machine and serves only `localhost`, `127.0.0.1` and `[::1]`, because a web page could reach it under any other name. Use one of these, or start Headgate with `--allow-host` and the name.';
  return errorAt(url, { reason: 'host_unknown', message }, asked, isOwn);
}

/** Rejects a malformed HTTP request, in the dialect of its path if it has one. */
export function malformed(asked: RefusedRequest, isOwn: OwnUrlTest): Response {
  const { origin, pathname } = new URL(asked.request.url);
  const [what = '', ...path] = pathname.slice(MALFORMED_PATH.length).split('/');
  const called = `${origin}/${path.join('/')}`;
  const request = { headers: asked.request.headers, url: called };
  return errorAt(called, malformedReply(what), { ...asked, request }, isOwn);
}

function errorAt(
  url: string,
  reply: ErrorReply,
  asked: RefusedRequest,
  isOwn: OwnUrlTest,
): Response {
  if (isOwn(url)) return rejectedResponse('opaque', rejected(reply), asked);
  const table = isolateConfig.copy;
  const shape = errorShape({ method: 'GET' }, calledUrl(url, table), table);
  return rejectedResponse(shape, rejected(reply), asked);
}

/** Cached pattern for the value of `ALLOWED_HOSTS`, which is the same for all calls. */
let allowed = { hosts: '', pattern: patternOf('') };

function isAllowed(url: string, hosts: string): boolean {
  if (allowed.hosts !== hosts) allowed = { hosts, pattern: patternOf(hosts) };
  return allowed.pattern.test(url);
}

/** Returns a pattern of URLs with one of these hosts and any port. An empty name matches no host. */
function patternOf(hosts: string): RegExp {
  const names = hosts.split(',').map((name) => name.replace(/[^\w-]/g, '\\$&'));
  return new RegExp(`^[^/]+//(?=[^/?:])(?:${names.join('|')})(?::\\d*)?(?:[/?]|$)`, 'i');
}
