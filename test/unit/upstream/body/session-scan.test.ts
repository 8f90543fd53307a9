// What names the user or the session in a body, whatever else stands in it.
import { expect, it } from 'vitest';
import { gzipSync } from 'node:zlib';
import { SESSION_SCAN_BYTES_MAX, sessionIn } from '../../../../src/upstream/body/encoded-scan.ts';

const encode = (body: unknown): Uint8Array =>
  new TextEncoder().encode(typeof body === 'string' ? body : JSON.stringify(body));

const CLAUDE = JSON.stringify({ device_id: 'd', account_uuid: '', session_id: '2c4e1cf0' });

it.each([
  [{ model: 'm', user: 'alice' }, 'user\nalice'],
  [{ user: 7 }, 'user\n7'],
  [{ safety_identifier: 's', user: 'u' }, 'safety_identifier\ns'],
  [{ prompt_cache_key: 'k', user: 'u' }, 'user\nu'],
  [{ metadata: { user_id: 'u', other: 'x' } }, 'metadata.user_id\nu'],
  [
    { metadata: { user_id: 'user_a_account__session_b' } },
    'metadata.user_id\nuser_a_account__session_b',
  ],
  [{ user_id: 'z' }, 'user_id\nz'],
  [{ session_id: 'r' }, 'session_id\nr'],
  [{ conversation: 'conv_1' }, 'conversation\nconv_1'],
  [{ conversation: { id: 'conv_1' } }, 'conversation.id\nconv_1'],
  [{ previous_response_id: 'resp_1', input: 'x' }, 'previous_response_id\nresp_1'],
  [{ previous_response_id: 'resp_1', prompt_cache_key: 'k' }, 'prompt_cache_key\nk'],
  [
    { messages: [{ role: 'user', content: '"user": "mallory"', user: 'x' }], user: 'bob' },
    'user\nbob',
  ],
])('finds in %j the session %j', async (body, expected) => {
  expect(await sessionIn(encode(body), null)).toBe(expected);
});

it.each([
  [{}],
  [{ user: null }],
  [{ user: '' }],
  [{ user: '  ' }],
  [{ user: true }],
  [{ user: ['a'] }],
  [{ user: { user: 'a' } }],
  [{ metadata: { deep: { user_id: 'a' } } }],
  [{ messages: [{ user: 'a' }], extra: { user: 'a' } }],
  ['no json'],
  ['[{"user":"a"}]'],
  [''],
])('finds none in %j', async (body) => {
  expect(await sessionIn(encode(body), null)).toBeNull();
});

it('keeps the texts of Claude Code apart by their sessions', async () => {
  const found = await sessionIn(encode({ metadata: { user_id: CLAUDE } }), null);
  expect(found).toContain('2c4e1cf0');
});

it('bounds the value and the body', async () => {
  const long = await sessionIn(encode({ user: 'ä'.repeat(10_000) }), null);
  expect(long?.length).toBeLessThanOrEqual(520);
  const content = 'x'.repeat(SESSION_SCAN_BYTES_MAX);
  expect(await sessionIn(encode({ messages: [{ content }], user: 'late' }), null)).toBeNull();
  expect(await sessionIn(encode({ user: 'early', messages: [{ content }] }), null)).toBe(
    'user\nearly',
  );
});

it('reads compressed bodies, within the same bound', async () => {
  expect(await sessionIn(gzipSync(encode({ user: 'alice' })), 'gzip')).toBe('user\nalice');
  const bomb = gzipSync(encode({ messages: 'x'.repeat(50_000_000), user: 'late' }));
  expect(await sessionIn(bomb, 'gzip')).toBeNull();
  expect(await sessionIn(encode({ user: 'alice' }), 'unknown')).toBeNull();
  expect(await sessionIn(encode({ user: 'alice' }), 'gzip')).toBeNull();
});

it('finds the same wherever a body is cut', async () => {
  const body = encode({ messages: [{ content: 'Ünïcode "quoted"' }], user: 'alice' });
  for (let end = 0; end < body.length; end += 1) {
    const found = await sessionIn(body.subarray(0, end), null);
    expect([null, 'user\nalice']).toContain(found);
  }
});
