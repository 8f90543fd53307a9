import type { Config } from '../../contract/config/config.ts';
import { quoteName, ticked, type FieldError } from '../field-error.ts';
import { nearestNames } from '../nearest-names.ts';
import { UNKNOWN_NAME } from '../../upstream/operation/operation.ts';
import {
  LEASE,
  LIMITED_OPERATIONS,
  LISTED_OPERATIONS,
} from '../../upstream/operation/operations-table.ts';
import { compileGlobs } from '../../routing/glob.ts';
import { LEASE_RIGHTS } from '../../routing/key-access.ts';
import { namesPaths } from '../../routing/path-match.ts';

/** Finds names of operations that never match in their place. */
export function operationErrors(config: Config): FieldError[] {
  return [
    ...config.groups.flatMap(({ match }, index) => {
      const known = namesPaths({ match }) ? ALL : COUNTED;
      return wrongNames(match.operations, `groups[${index}].match.operations`, known, [
        'takes no slot, so its calls are never counted',
        ALL,
      ]);
    }),
    ...config.keys.flatMap(({ allow }, index) =>
      notListed(allow, `keys[${index}].allow`, [...MAY_BE_LISTED, ...LEASE_RIGHTS]),
    ),
    ...config.upstreams.flatMap(({ allow }, index) =>
      notListed(allow, `upstreams[${index}].allow`, MAY_BE_LISTED),
    ),
  ];
}

/** Names by which groups match calls that take a slot. */
const COUNTED = [...LIMITED_OPERATIONS, LEASE];

/** Names of operations that the operator's key never opens, or that need not be listed. */
const NEVER_LISTED = ['realtime', 'administration', 'count_tokens', 'health'];

const MAY_BE_LISTED = [...LISTED_OPERATIONS, UNKNOWN_NAME];

const ALL = [...new Set([...LIMITED_OPERATIONS, ...MAY_BE_LISTED, ...NEVER_LISTED])];

/** Finds a name that no call with a slot can have. */
export function unknownOperation(name: string, path: string): FieldError[] {
  return wrongNames([name], path, LIMITED_OPERATIONS, ['takes no slot', ALL]).map((error) => ({
    ...error,
    path,
  }));
}

function notListed(names: readonly string[], path: string, known: readonly string[]): FieldError[] {
  const elsewhere = [...NEVER_LISTED, ...LEASE_RIGHTS];
  return wrongNames(names, path, known, ['cannot be listed here', elsewhere]);
}

function wrongNames(
  patterns: readonly string[],
  path: string,
  known: readonly string[],
  [why, elsewhere]: readonly [string, readonly string[]],
): FieldError[] {
  return patterns.flatMap((pattern, index) => {
    const matches = compileGlobs([pattern]);
    if (known.some(matches)) return [];
    const near = nearestNames(pattern, known);
    const hint =
      near.length === 0 ? `use one of ${ticked(known)}` : `did you mean ${ticked(near)}?`;
    const is = elsewhere.some(matches);
    const message = `${quoteName(pattern)} ${is ? why : 'is not a known operation'}; ${hint}`;
    return [{ path: `${path}[${index}]`, message }];
  });
}
