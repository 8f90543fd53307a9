// What a call's groups take its model for.
import { expect, it } from 'vitest';
import type { Located } from '../../../src/call/request/locate.ts';
import { Metering } from '../../../src/call/plan/metering.ts';
import type { Placement } from '../../../src/routing/placement.ts';
import { BUILT_IN_UPSTREAMS } from '../../../src/providers/catalog.ts';
import { NO_TIERS } from '../../../src/upstream/usage/tiers.ts';

const PLACEMENT = { config: null } as Placement;
const ESTIMATE = {
  inputTokens: 1,
  maxOutputTokens: null,
  isStream: false,
  wantsUsage: false,
  tiers: NO_TIERS,
};

function inputPriceOf(model: string, aliases: Record<string, string>): number | undefined {
  const openai = BUILT_IN_UPSTREAMS.find(({ id }) => id === 'openai');
  const located = {
    upstream: { ...openai, aliases, prices: { priced: { input: 3_000_000, output: 1 } } },
    model,
    operation: { name: 'chat', shape: 'openai', limited: true, model: { from: 'body' } },
  } as unknown as Located;
  return new Metering(located, ESTIMATE).estimateFor(PLACEMENT).price?.input;
}

it('an alias stands for its model however it is written', () => {
  expect(inputPriceOf('my-deployment', { 'My-Deployment': 'priced' })).toBe(3);
  expect(inputPriceOf('MY-deployment', { 'my-deployment': 'priced' })).toBe(3);
  expect(inputPriceOf('priced', {})).toBe(3);
});

it.each(['constructor', '__proto__', 'toString'])(
  'a model called %s is one like any other',
  (model) => {
    expect(inputPriceOf(model, {})).toBeUndefined();
  },
);
