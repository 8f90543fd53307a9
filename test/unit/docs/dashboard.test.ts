// docs/dashboard.md explains every state of a group.
import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { GROUP_STATES } from '../../../src/contract/status-words.ts';

it('has every state once', () => {
  const page = readFileSync('docs/dashboard.md', 'utf8');
  const [, section = ''] = page.split('\n### States\n');
  const cells = [...(section.split('\n#')[0] ?? '').matchAll(/^\| (\*[^|]*) \|/gm)];
  const states = cells.flatMap(([, cell = '']) =>
    [...cell.matchAll(/\*([^*]+)\*/g)].map(([, state = '']) => state),
  );
  expect(states.toSorted()).toEqual(GROUP_STATES.toSorted());
});
