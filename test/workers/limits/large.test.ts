// Calls that are large for a limit of tokens, over the wire and with an upstream that counts them.
import { afterAll, describe, expect, it } from 'vitest';
import { nothingLeaks } from '../support/pool.ts';
import { chat, open, type CallInit, type WorkerOpenCall } from '../support/worker.ts';
import { later, newStage, served, reportedBy, untilGroup, type LimitsStage } from './stage.ts';

afterAll(nothingLeaks);

/** About so many tokens of input, at four bytes a token. */
function ofTokens(tokens: number, fields = {}): CallInit {
  const messages = [{ role: 'user', content: 'the '.repeat(tokens) }];
  return { json: { model: 'm', max_tokens: 9, messages, ...fields } };
}

function sendTokens(
  stage: LimitsStage,
  label: string,
  tokens: number,
  fields = {},
): WorkerOpenCall {
  return open(stage.chat, label, ofTokens(tokens, fields));
}

const NEVER_FITS = { status: 413, tries: '0', reason: 'never_fits', shouldRetry: 'false' };

describe('a call that is larger than a limit of tokens', () => {
  it('is refused at once with both figures, and never sent', async () => {
    const stage = await newStage({ group: { limits: { tpm: 10_000, itpm: 60_000 } } });
    expect(await reportedBy(sendTokens(stage, 'large', 50_000))).toEqual(NEVER_FITS);
    const refused = await chat(stage.chat, 'again', ofTokens(50_000));
    const { message } = (await refused.json<{ error: { message: string } }>()).error;
    expect(message).toMatch(/estimated at 5\d{4} tokens/);
    expect(message).toMatch(
      new RegExp(`\`${stage.group}\` allows 10000 in a minute \\(\`tpm\`\\)`),
    );
    expect((await stage.strict.stats()).total).toBe(0);
    expect(await reportedBy(sendTokens(stage, 'next', 500))).toEqual(served(1));
  });

  it('is one by what it may write, where its provider sets that aside', async () => {
    const upstream = { id: 'cerebras' };
    const stage = await newStage({ upstream, group: { limits: { tpm: 10_000 } } });
    expect(await reportedBy(sendTokens(stage, 'large', 10, { max_tokens: 20_000 }))).toEqual(
      NEVER_FITS,
    );
    expect(await reportedBy(sendTokens(stage, 'next', 10, { max_tokens: 900 }))).toEqual(served(1));
  });

  it('is none where that counts only as it is written', async () => {
    const stage = await newStage({ group: { limits: { tpm: 10_000 } } });
    expect(await reportedBy(sendTokens(stage, 'a', 10, { max_tokens: 20_000 }))).toEqual(served(1));
  });
});

it('a third call of two fifths of the limit waits for the next minute', async () => {
  const stage = await newStage({ group: { limits: { tpm: 10_000, burst: 1 } } });
  const sendOne = (label: string): WorkerOpenCall => sendTokens(stage, label, 3_900);
  for (const label of ['first', 'second']) {
    expect(await reportedBy(sendOne(label))).toEqual(served(1));
  }
  const third = sendOne('third');
  await untilGroup(stage, { queued: 1 });
  await later(stage, 55_000);
  expect((await stage.strict.stats()).total).toBe(2);
  await later(stage, 7_000);
  expect(await reportedBy(third)).toEqual(served(1));
});
