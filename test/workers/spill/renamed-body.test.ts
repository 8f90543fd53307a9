import { expect, test } from 'vitest';
import { BODY_LIMITS, BodyBudget } from '../../../src/upstream/body/body-budget.ts';
import { keepBody, renamedBody, type KeptBody } from '../../../src/upstream/body/kept-body.ts';
import { unreadBody } from '../../../src/upstream/body/request-body.ts';

const BODY = '{"model":"here","messages":[{"role":"user","content":"für"}]}';
const BYTES = new TextEncoder().encode(BODY);

/** A body that is kept, and the budget that counts it. */
async function kept(text: string, bytesMax: number) {
  const budget = new BodyBudget({ ...BODY_LIMITS, freeBytes: bytesMax });
  const headers = { 'content-length': String(new TextEncoder().encode(text).length) };
  const request = new Request('http://x', { method: 'POST', body: text, headers });
  const { signal } = new AbortController();
  const body = await keepBody(unreadBody(request), bytesMax, budget, signal);
  if (body === null || body === 'aborted') throw new Error('not kept');
  return { budget, body };
}

const textOf = (body: KeptBody | null) => new Response(body?.open() ?? null).text();

test('a body under another name is held once while it waits, within the budget, and made when it goes out', async () => {
  const { budget, body } = await kept(BODY, BYTES.length);
  const renamed = renamedBody(body, 'there-now');
  const expected = BODY.replace('here', 'there-now');
  expect(renamed?.contentLength).toBe(BYTES.length + 5);
  expect(await textOf(renamed)).toBe(expected);
  expect(await textOf(renamed)).toBe(expected);
  // Each time anew: no copy is kept beside the body that it is made from.
  expect(renamed?.bytes).not.toBe(renamed?.bytes);
  expect(renamed?.bytes).toEqual(new TextEncoder().encode(expected));
  expect(budget.bytesHeld).toBe(BYTES.length);
  renamed?.discard();
  expect(budget.bytesHeld).toBe(0);
});

test('the body stays as it came, for the upstream after the next', async () => {
  const { body } = await kept(BODY, BYTES.length);
  await textOf(renamedBody(body, 'there'));
  expect(await textOf(body)).toBe(BODY);
});

test('one without a model cannot be renamed', async () => {
  const { body } = await kept('{"messages":[]}', 15);
  expect(renamedBody(body, 'there')).toBeNull();
});
