import { isDeepStrictEqual } from 'node:util';
import { groupSchema } from '../../src/contract/config/group.ts';
import { upstreamSchema } from '../../src/contract/config/upstream-config.ts';

/** Groups and upstreams with nothing but their defaults. What they have to have is never left out. */
const GROUP = { ...groupSchema.parse({ name: 'x' }), name: '' };
const SPILLING = groupSchema.parse({ name: 'x', on_saturated: { spill_to: ['x'] } }).on_saturated;
const [MEMBER] = groupSchema.parse({ name: 'x', members: [{ upstream: 'x' }] }).members;
const UPSTREAM = {
  ...upstreamSchema.parse({ id: 'x', base_url: 'https://x.example' }),
  id: '',
  base_url: '',
};

/** Leaves out of a group whatever is as it would be anyway. */
export function shortGroup(group: object): object {
  const { members, on_saturated: saturated } = group as {
    readonly members?: readonly object[];
    readonly on_saturated?: unknown;
  };
  return {
    ...without(group, GROUP),
    ...(isPlain(saturated) ? { on_saturated: shortSpilling(saturated) } : {}),
    ...(members === undefined || members.length === 0
      ? {}
      : { members: members.map((each) => without(each, { ...MEMBER, upstream: '' })) }),
  };
}

/** Removes the default values of a spill rule and its targets. */
function shortSpilling(saturated: object): object {
  const { spill_to: targets, ...rest } = saturated as { readonly spill_to?: readonly unknown[] };
  return {
    spill_to: targets?.map((each) => (isPlain(each) ? without(each, { model: null }) : each)),
    ...(isPlain(SPILLING) ? without(rest, SPILLING) : rest),
  };
}

/** Leaves out of an upstream whatever is as it would be anyway. */
export const shortUpstream = (upstream: object): object => without(upstream, UPSTREAM);

/** Drops fields that are equal to those of `defaults`, however deep. */
function without(value: object, defaults: object): object {
  const usual = new Map<string, unknown>(Object.entries(defaults));
  return Object.fromEntries(
    Object.entries(value).flatMap(([name, each]: [string, unknown]) => {
      const other = usual.get(name);
      if (each === undefined || isDeepStrictEqual(each, other)) return [];
      const isNested = isPlain(each) && isPlain(other);
      return [[name, isNested ? without(each, other) : each]];
    }),
  );
}

const isPlain = (value: unknown): value is object =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
