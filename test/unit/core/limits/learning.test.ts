import { expect, test } from 'vitest';
import { leaseIdOf, ticketId } from '../../../../src/core/words/ids.ts';
import { SOMEBODY, someTicket, type TestGroup } from '../../../support/core-builders.ts';
import { leftIn, metered } from './metered.ts';

/** Lessons about a model count for those who wait already. */

/** Asks for a call that does not say how much it will write. */
function ask(group: TestGroup, name: string): string[] {
  const estimate = {
    inputTokens: 100,
    maxOutputTokens: null,
    reserve: 'mean',
    price: null,
  } as const;
  const holder = { ...SOMEBODY, model: 'practice' };
  const ticket = someTicket(name, group.now, { estimate, holder });
  const leaseId = leaseIdOf(ticketId(name), 1);
  return group.send({ kind: 'acquire', ticket, leaseId, sliceMs: 600_000 });
}

/** Ends a call that used this many tokens. */
function end(group: TestGroup, name: string, inputTokens: number, outputTokens: number): string[] {
  const seen = { inputTokens, outputTokens };
  return group.release(name, 'success', 1, {
    requests: 1,
    inputTokens,
    outputTokens,
    usd: 0,
    seen,
  });
}

test('a queue that came before the first call ended goes by what that call taught', () => {
  const group = metered({ tpm: 1_500 });
  expect(ask(group, 'first')).toEqual(['grant first.1']);
  for (const name of ['a', 'b', 'c']) expect(ask(group, name)).toEqual([]);
  // Instead of 1,000 tokens of output, which are assumed where nothing is known, there were 20.
  const grants = ['grant a.1', 'grant b.1', 'grant c.1'];
  expect(end(group, 'first', 100, 20)).toEqual(['ended first.1', ...grants]);
  expect(leftIn(group)['tpm']).toBe(0.97 * 1_500 - 4 * 120);
});
