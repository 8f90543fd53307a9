import type { Config } from '../../contract/config/config.ts';
import { quoteName, type FieldError } from '../field-error.ts';
import { nearestNames } from '../nearest-names.ts';
import {
  LIMITED_OPERATIONS,
  LISTED_OPERATIONS,
} from '../../upstream/operation/operations-table.ts';
import { compileGlobs } from '../../routing/glob.ts';

/** Finds names of operations that mean nothing where they stand, and so would never match. */
export function operationErrors(config: Config): FieldError[] {
  return [
    ...config.groups.flatMap(({ match }, index) =>
      wrongNames(match.operations, `groups[${index}].match.operations`, LIMITED_OPERATIONS, [
        'takes no slot, so no call of it is ever counted',
        [...LISTED_OPERATIONS, ...NEVER_LISTED],
      ]),
    ),
    ...config.keys.flatMap(({ allow }, index) => notListed(allow, `keys[${index}].allow`)),
    ...config.upstreams.flatMap(({ allow }, index) =>
      notListed(allow, `upstreams[${index}].allow`),
    ),
  ];
}

/** Names that never go with the operator's key, or need not be listed. */
const NEVER_LISTED = ['realtime', 'administration', 'other', 'count_tokens', 'health'];

function notListed(names: readonly string[], path: string): FieldError[] {
  return wrongNames(names, path, LISTED_OPERATIONS, ['cannot be listed here', NEVER_LISTED]);
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
      near.length === 0
        ? `known here: ${known.join(', ')}`
        : `did you mean ${near.map((name) => `"${name}"`).join(', ')}?`;
    const is = elsewhere.some(matches);
    const message = `${quoteName(pattern)} ${is ? why : 'is no operation'}; ${hint}`;
    return [{ path: `${path}[${index}]`, message }];
  });
}
