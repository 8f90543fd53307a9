// Groups and upstreams as the command line writes them: without default values.
import { describe, expect, it } from 'vitest';
import { shortGroup, shortUpstream } from '../../../scripts/cli/without-defaults.ts';
import { groupSchema } from '../../../src/contract/config/group.ts';
import { upstreamSchema } from '../../../src/contract/config/upstream.ts';

describe('the short form', () => {
  it('keeps the name and the address', () => {
    expect(shortGroup(groupSchema.parse({ name: 'x' }))).toEqual({ name: 'x' });
    const upstream = { id: 'x', base_url: 'https://x.example' };
    expect(shortUpstream(upstreamSchema.parse(upstream))).toEqual(upstream);
  });

  it.each([
    [{ spill_to: ['a', { upstream: 'b' }], after_ms: 0 }, ['a', 'b']],
    [{ spill_to: [{ upstream: 'a', model: 'm' }], after_ms: 5, first_token_ms: 7 }, ['a']],
  ])('leaves out the defaults of spilling: %j', (saturated, upstreams) => {
    const group = groupSchema.parse({ name: 'g', on_saturated: saturated });
    const short = shortGroup(group) as { readonly on_saturated: object };
    expect(JSON.stringify(short)).not.toMatch(/null|"after_ms":0/);
    expect(groupSchema.parse(short)).toEqual(group);
    expect(JSON.stringify(short.on_saturated)).toContain(upstreams.at(-1));
  });
});
