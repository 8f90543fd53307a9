// An isolate that sees a key for the first time asks the directory whose it is, and sends its call to that account's pool. Each of
// these isolates has modules of its own, and one directory.
import { expect, it } from 'vitest';
import { directoryOf } from '../../../src/env.ts';
import { poolName } from '../../../src/contract/pool-name.ts';
import { pool } from '../support/pool.ts';
import { strictScope } from '../support/strict.ts';
import { admin, env, until } from '../support/worker.ts';
import { startIsolate, writeElsewhere, type ProxyIsolate } from './isolate.ts';

const GROUP = 'auto:anthropic';
const TOKEN = 'sk-ant-oat01-elsewhere';
const CALL = { model: 'claude-haiku-4-5', max_tokens: 9, messages: [] };
const HEADERS = { authorization: `Bearer ${TOKEN}`, 'anthropic-version': '2023-06-01' };

it('an isolate knows whose a key is that was taken in another one', async () => {
  const accountHeader = 'anthropic-organization-id';
  const strict = await strictScope('known', { accounts: { [TOKEN]: 'org_9' }, accountHeader });
  await writeElsewhere({ upstreams: [{ id: 'anthropic', base_url: strict.url }] });
  const send = async (isolate: ProxyIsolate): Promise<void> => {
    const { status } = await isolate.send('/anthropic/v1/messages', CALL, { headers: HEADERS });
    expect(status).toBe(200);
  };
  const { json } = await admin('POST', '/fingerprint', { key: TOKEN });
  const fingerprint = json.fingerprint as string;
  await send(await startIsolate());
  const account = await directoryOf(env).accountOf(`anthropic auto ${fingerprint}`);
  expect(account).toMatch(/^acct_/);
  const isolate = await startIsolate();
  const granted = async (partition: string | null): Promise<number> =>
    (await pool(poolName(GROUP, partition)).decisions({})).length;
  let before = { own: 0, account: 0 };
  // The objects are gone with the modules that they were made of, and the first who asks is told so.
  await until(async () => {
    before = { own: await granted(fingerprint), account: await granted(account) };
  });
  await send(isolate);
  expect(await granted(account)).toBe(before.account + 1);
  expect(await granted(fingerprint)).toBe(before.own);
});
