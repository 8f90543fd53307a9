import { assert, describe, expect, test } from 'vitest';
import { someSettings } from '../support/core-builders.ts';
import { Fleet } from './fleet/fleet.ts';
import * as histories from './fleet/histories.ts';
import { DESIGN } from './fleet/rules.ts';
import { SABOTEURS } from './fleet/saboteurs.ts';

/** Histories that were made up against the rules of the bound, and that they notice when one is taken out. */

describe('the design holds', () => {
  test.each(Object.entries(histories))('%s', (_name, { settings, run }) => {
    assert.doesNotThrow(() => run(new Fleet(someSettings(settings))));
  });
});

describe('without the rule it is noticed', () => {
  test.each(SABOTEURS.map((saboteur) => [saboteur.rule, saboteur] as const))(
    '%s',
    (_rule, { history, rules, noticed }) => {
      const fleet = new Fleet(someSettings(history.settings), { rules: { ...DESIGN, ...rules } });
      expect(() => history.run(fleet)).toThrow(noticed);
    },
  );
});
