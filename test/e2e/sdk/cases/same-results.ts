import { expect, test } from 'vitest';
import type { StrictUpstream } from '../../../strict-upstream/strict-upstream.ts';
import { plain } from '../../support/comparable.ts';
import type { SdkCase, SdkRoute } from './sdk-case.ts';

/** Two ways to one upstream. They are known once the upstream runs. */
export interface Ways {
  readonly straight: () => SdkRoute;
  readonly through: () => SdkRoute;
  /** The upstream, if it can tell what it was asked. */
  readonly asked?: () => StrictUpstream;
  /** Takes out what the upstream makes anew for every call. @default nothing */
  readonly compare?: (value: unknown) => unknown;
}

/** Runs a case: its result, and what the upstream saw of it. */
async function outcome(one: SdkCase, on: SdkRoute, asked: Ways['asked']): Promise<unknown> {
  asked?.().reset();
  const result = await one.run(on);
  const stats = asked?.().stats();
  const seen = stats?.arrivals.map(({ path, model, label }) => ({ path, model, label }));
  return { result, seen, uncounted: stats?.uncounted };
}

/** Makes a test of each case: its result through Headgate is the one that it has without. */
export function testSameResults(cases: readonly SdkCase[], ways: Ways): void {
  const { straight, through, asked, compare = plain } = ways;
  test.each(cases)('$name', async (one) => {
    const expected = compare(await outcome(one, straight(), asked));
    expect(compare(await outcome(one, through(), asked))).toEqual(expected);
    // Two empty results would be equal too.
    expect(expected).not.toMatchObject({ result: null });
  });
}
