import { describe, expect, it } from 'vitest';
import { compileRoutes, type KeyAccount } from '../../../src/routing/placement.ts';
import type { Upstream } from '../../../src/contract/config/upstream.ts';
import { byId, aCall, aConfig, anUpstream } from './fixtures.ts';

const ZAI = anUpstream('zai', { baseUrl: 'https://api.z.ai' });

/** The automatic placement of a call of the model with the limit 2. */
function place(account: KeyAccount | null, more: Partial<Upstream> = {}) {
  const call = aCall({ ...ZAI, ...more }, { model: 'glm-5', account });
  const [placement] = compileRoutes(aConfig({}), byId()).place(call);
  return placement;
}

const KNOWN: KeyAccount = { kind: 'known', name: 'acct_1', isProved: true };
const UNPROVED: KeyAccount = { kind: 'unproved', claimed: 'acct_1' };

describe('in an automatic group', () => {
  it('a key that stands for itself has a pool with the whole limit', () => {
    expect(place(null)).toMatchObject({ partition: 'fp-caller', assumed: { slotsMax: 2 } });
  });

  it('keys of one account share its pool', () => {
    expect(place(KNOWN)).toMatchObject({ partition: 'acct_1', assumed: { slotsMax: 2 } });
    expect(place(KNOWN)).not.toHaveProperty('isUnproved');
  });

  it('a key that only claims an account has one slot of its own', () => {
    const own = { partition: 'fp-caller', assumed: { slotsMax: 1 }, isUnproved: true };
    expect(place(UNPROVED)).toMatchObject(own);
  });

  it('where keys name no account there is one pool, unless the operator says what does', () => {
    const shared = { keyNamesAccount: false };
    expect(place(null, shared)).toMatchObject({ partition: null });
    expect(place(null, { ...shared, accountBy: 'key' })).toMatchObject({ partition: 'fp-caller' });
    expect(place(KNOWN, { ...shared, accountBy: 'claim:sub' })).toMatchObject({
      partition: 'acct_1',
    });
  });
});
