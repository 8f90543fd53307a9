// docs/reasons.md against the code: every reason has one row, with its status and whether a retry may help.
import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { statusIn } from '../../../src/call/results/wire-error.ts';
import { REASONS, type Reason } from '../../../src/contract/reasons.ts';

/** The only place that refuses with this reason marks the refusal as permanent. */
const PERMANENT_IN_USE: readonly string[] = ['upstream_redirects'];

const page = readFileSync('docs/reasons.md', 'utf8');
const sections = page.split(/^## /m).filter((section) => !section.startsWith('Bodies\n'));
const rows = sections.flatMap((section) => [
  ...section.matchAll(
    /^\| `(?<reason>[a-z_]+)` \| (?<status>[^|]+) \| (?<cause>[^|]+) \| (?<advice>[^|]+) \|$/gm,
  ),
]);
const documented = rows.map(({ groups = {} }) => `${groups['reason']}: ${groups['status']}`);

it('lists exactly the reasons of the code, each with its status and whether it is worth a retry', () => {
  const expected = Object.entries(REASONS).map(([reason, { status, permanent }]) => {
    const canRetry = !permanent && !PERMANENT_IN_USE.includes(reason);
    const forAnthropic = statusIn('anthropic', reason as Reason);
    const other = forAnthropic === status ? '' : `; ${forAnthropic} for Anthropic`;
    return `${reason}: ${status}${canRetry ? ', retry' : ''}${other}`;
  });
  expect(documented.toSorted()).toEqual(expected.toSorted());
});

it('says for each reason what happened and what to do', () => {
  const unfinished = rows.filter(
    ({ groups = {} }) =>
      !/^[A-Z].*\.$/.test(groups['cause'] ?? '') || !/^[A-Z].*\.$/.test(groups['advice'] ?? ''),
  );
  expect(unfinished.map(({ groups = {} }) => groups['reason'])).toEqual([]);
});
