import { describe, expect, it } from 'vitest';
import { lineOf, parseConfigText, yamlOf } from '../../../dashboard/src/model/config-text.ts';

const YAML = `# ours
groups:
  - name: a
    limits:
      max_concurrency: five
  - name: b
    match: { models: [x, 5] }
    fairness:
      weights: { "team:a": 0 }
`;

describe('the line of an error', () => {
  it.each([
    ['groups[0].limits.max_concurrency', 5],
    ['groups[1]', 6],
    ['groups[1].match.models[1]', 7],
    ['groups[1].fairness.weights["team:a"]', 9],
    ['groups[0].limits.rpm', 4],
    ['', 2],
  ])('is, of %s: %i', (path, line) => {
    expect(lineOf(YAML, path)).toBe(line);
  });

  it('is found in JSON too', () => {
    expect(lineOf('{\n  "groups": [\n    { "name": 5 }\n  ]\n}', 'groups[0].name')).toBe(3);
  });

  it('is none where there is no text', () => {
    expect(lineOf('', 'groups')).toBeNull();
  });
});

it('a document survives being shown as text', () => {
  const document = { name: 'a', match: { models: ['no', '1.0', 'a*'] }, location: null };
  expect(parseConfigText(yamlOf(document), null)).toEqual(document);
});
