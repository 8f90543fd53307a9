// Tables and JSON, as terminals of any width take them.
import { expect, it } from 'vitest';
import { show, table } from '../../../scripts/cli/output.ts';

const ID = 'a1b2c3d4-0000-4000-8000-000000000000.1';
const row = [ID, 'x'.repeat(60), 'y'.repeat(60)];
const draw = (width: number): string[] =>
  table(['lease', 'agent', 'model'], [row], width).split('\n');

it('a cell is cut at 48, and sooner where the terminal is narrow', () => {
  expect(draw(Infinity)[1]).toBe(`${ID}  ${'x'.repeat(47)}…  ${'y'.repeat(47)}…`);
  expect(draw(100)[1]).toBe(`${ID}  ${'x'.repeat(23)}…  ${'y'.repeat(23)}…`);
  expect(draw(70)[1]).toBe(`${ID}  ${'x'.repeat(9)}…  ${'y'.repeat(9)}…`);
});

it('the name in the first column stays whole, whatever the width: the next command wants it', () => {
  expect(draw(20)[1]).toContain(ID);
  expect(table(['group'], [['g'.repeat(64)]], 20)).toContain('g'.repeat(64));
});

it('neither moves the cursor, and JSON says the same', () => {
  const hostile = 'a\u009b2J\u001b[2J\u202eb';
  const written: string[] = [];
  show(
    { isJson: true, out: (text) => written.push(text), note: () => undefined },
    { hostile },
    () => '',
  );
  const [json = ''] = written;
  expect(JSON.parse(json)).toEqual({ hostile });
  for (const text of [json, table(['agent'], [[hostile]])]) {
    // oxlint-disable-next-line no-control-regex -- they are what is looked for
    expect(text).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202e]/);
  }
});
