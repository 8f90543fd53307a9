import { expect, test } from 'vitest';
import { metered } from './metered.ts';
import { leaseIdOf, ticketId } from '../../../../src/core/words/ids.ts';
import type { CallEstimate } from '../../../../src/core/words/ticket.ts';
import { someTicket } from '../../../support/core-builders.ts';

/** Costs of a call of which its upstream did not say what it used: what was reserved. */

/** A release with the use that the provider reported, of a call for which nothing was reserved. */
const REPORTED = {
  requests: 1,
  inputTokens: 70,
  outputTokens: 11,
  usd: 0.5,
  seen: { inputTokens: 70, outputTokens: 11 },
  cachedTokens: 20,
  bill: { team: 'apps', model: 'gpt-4o-2024-08-06' },
};

test.each([
  ['without limits', metered({}, { isMetered: false })],
  ['with a limit of requests', metered({ rpm: 100 })],
])('what a provider reports of a call stands in the costs of a group %s', (_, group) => {
  const ticket = someTicket('one', group.now, {});
  const leaseId = leaseIdOf(ticketId('one'), 1);
  group.send({ kind: 'acquire', ticket, leaseId, sliceMs: 1_000 });
  expect(group.state.leases.get(leaseId)?.reserved?.billed).toBeUndefined();
  group.send({ kind: 'release', leaseId, outcome: 'success', settlement: REPORTED });
  const [line, ...others] = group.state.controls.costs.today?.lines ?? [];
  expect(others).toEqual([]);
  expect(line).toMatchObject({ team: 'apps', model: ticket.holder.model ?? REPORTED.bill.model });
  expect(line).toMatchObject({ usd: 0.5, inputTokens: 70, cachedTokens: 20, calls: 1, waited: 0 });
  expect(line?.unreported).toBeUndefined();
  expect(group.state.totals).toMatchObject({ inputTokens: 70, outputTokens: 11, usd: 0.5 });
  expect(group.state.talliesDirtyAt).not.toBeNull();
});

test('a call of whose use nothing is reported is told apart', () => {
  const group = metered({});
  const leaseId = leaseIdOf(ticketId('one'), 1);
  group.send({
    kind: 'acquire',
    ticket: someTicket('one', group.now, {}),
    leaseId,
    sliceMs: 1_000,
  });
  const nothing = {
    ...REPORTED,
    inputTokens: 0,
    outputTokens: 0,
    usd: 0,
    seen: null,
    cachedTokens: 0,
  };
  group.send({ kind: 'release', leaseId, outcome: 'success', settlement: nothing });
  expect(group.state.controls.costs.today?.lines).toMatchObject([
    { usd: 0, inputTokens: 0, calls: 1, unpriced: 0, unreported: 1 },
  ]);
});

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
