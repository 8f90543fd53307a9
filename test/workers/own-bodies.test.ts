// Requests to our own routes whose body is cut short: each is answered with what to do, and nothing is logged, because a
// disconnecting caller is not an error of Headgate.
import { createExecutionContext } from 'cloudflare:test';
import { expect, it, vi } from 'vitest';
import { createApp } from '../../src/http/app.ts';
import { configure, env } from './support/worker.ts';

const ADMIN = { authorization: 'Bearer test-admin-token' };
const CALLER = { authorization: 'Bearer sk-mine' };

/** A body whose first bytes are followed by an error. */
function brokenBody(): ReadableStream<Uint8Array> {
  let isBegun = false;
  return new ReadableStream({
    pull(controller) {
      if (isBegun) return controller.error(new Error('Network connection lost.'));
      isBegun = true;
      controller.enqueue(new TextEncoder().encode('{"group"'));
    },
  });
}

it.each([
  ['POST', '/leases', CALLER],
  ['PATCH', '/leases/x', CALLER],
  ['DELETE', '/leases/x', CALLER],
  ['POST', '/webhooks/sim', {}],
  ['PUT', '/admin/api/config', ADMIN],
  ['POST', '/admin/api/groups/switch', ADMIN],
  ['POST', '/admin/api/session', {}],
])('%s %s with a body that breaks off is refused, and not logged', async (method, path, caller) => {
  await configure({
    leases: 'open',
    upstreams: [{ id: 'sim', base_url: 'https://sim.test', webhook_secret: 'WEBHOOK_TEST' }],
  });
  const log = vi.spyOn(console, 'log').mockReturnValue(undefined);
  const request = new Request(`https://headgate.test${path}`, {
    method,
    body: brokenBody(),
    headers: { ...caller, 'content-type': 'application/json' },
  });
  const app = createApp();
  const answer = await app.fetch?.(request as never, env, createExecutionContext());
  const text = await answer?.text();
  const lines = log.mock.calls.flat();
  log.mockRestore();
  expect(answer?.status).toBe(400);
  expect(text).toContain('ended before its announced length. Send the whole request again.');
  expect(lines).toEqual([]);
});
