import { isDeepStrictEqual } from 'node:util';
import { groupSchema } from '../../src/contract/config/group.ts';
import { upstreamSchema } from '../../src/contract/config/upstream.ts';

/** A group and an upstream with default values only. The empty strings keep required fields in the output. */
const GROUP = { ...groupSchema.parse({ name: 'x' }), name: '' };
const SPILLING = groupSchema.parse({ name: 'x', on_saturated: { spill_to: ['x'] } }).on_saturated;
const [MEMBER] = groupSchema.parse({ name: 'x', members: [{ upstream: 'x' }] }).members;
const UPSTREAM = {
  ...upstreamSchema.parse({ id: 'x', base_url: 'https://x.example' }),
  id: '',
  base_url: '',
};

/** Removes the default values of a group. */
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

function shortSpilling(saturated: object): object {
  const { spill_to: targets, ...rest } = saturated as { readonly spill_to?: readonly unknown[] };
  return {
    spill_to: targets?.map((each) => (isPlain(each) ? without(each, { model: null }) : each)),
    ...(isPlain(SPILLING) ? without(rest, SPILLING) : rest),
  };
}

export const shortUpstream = (upstream: object): object => without(upstream, UPSTREAM);

/** Removes fields that are equal to those of `defaults`, at any depth. */
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
