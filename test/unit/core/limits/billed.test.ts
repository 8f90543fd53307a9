import { expect, test } from 'vitest';
import { metered } from './metered.ts';
import { leaseIdOf, ticketId } from '../../../../src/core/words/ids.ts';
import type { CallEstimate } from '../../../../src/core/words/usage.ts';
import { someTicket } from '../../../support/core-builders.ts';

/** Costs of a call of which its upstream did not say what it used: what was reserved. */

test.each([
  ['whose price is not known', null, 1],
  ['that is free', { input: 0, output: 0 }, 0],
])('a call %s', (_, price, unpriced) => {
  const group = metered({});
  const estimate: CallEstimate = {
    inputTokens: 7,
    maxOutputTokens: 3,
    reserve: 'max_tokens',
    price,
    isBilled: true,
    team: 'apps',
  };
  const ticket = someTicket('one', group.now, { estimate });
  const leaseId = leaseIdOf(ticketId('one'), 1);
  group.send({ kind: 'acquire', ticket, leaseId, sliceMs: 1_000 });
  group.send({ kind: 'release', leaseId, outcome: 'success', settlement: null });
  expect(group.state.controls.costs.today?.lines).toMatchObject([
    { team: 'apps', usd: 0, inputTokens: 7, outputTokens: 3, calls: 1, unpriced, waited: 0 },
  ]);
});
