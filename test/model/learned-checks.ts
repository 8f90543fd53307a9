import assert from 'node:assert/strict';
import type { Limiter } from '../../src/core/member.ts';
import { SCOPES_MAX } from '../../src/core/parts/lessons.ts';
import type { GroupState } from '../../src/core/state.ts';
import type { NaiveGroup } from './naive-group.ts';
import type { NaiveLessons } from './naive-scopes.ts';

/** Checks that the core has learned the same as the naive group, for the same calls. */
export function checkLearned(state: GroupState, naive: NaiveGroup, reported: string): void {
  const { scopes } = naive.room;
  for (const member of state.members.values()) {
    const { id, controls } = member;
    const known = scopes.member(id);
    const { about, narrower } = controls.scopes;
    assert.deepEqual(partsIn(member), partsOf(known.own), `${reported}: lessons of '${id}'`);
    // A former member removes scopes later, because nothing checks them while it is only stored.
    if (!state.serving.includes(member)) continue;
    assert.deepEqual(
      about,
      known.about,
      `${reported}: the calls that lessons of '${id}' are about`,
    );
    const expected = known.narrower.map(({ scope }) => scope);
    const found = narrower.map(({ scope }) => scope);
    assert.deepEqual(found, expected, `${reported}: scopes of '${id}'`);
    for (const each of member.scopes.values()) {
      const isThis = known.narrower.find(({ scope }) => keyOf(scope) === keyOf(each.scope));
      assert.ok(isThis !== undefined, `${reported}: ${keyOf(each.scope)} at '${id}'`);
      assert.deepEqual(
        partsIn(each),
        partsOf(isThis),
        `${reported}: ${keyOf(each.scope)} at '${id}'`,
      );
    }
    assert.ok(narrower.length <= SCOPES_MAX);
  }
  assert.deepEqual(state.totals.reports, naive.answering.reports.counts, `${reported}: reports`);
}

/** Names all lessons that decide which calls are held, and that a reset must keep. */
export function decisiveLessons({ serving }: GroupState): string {
  const all = serving.map(({ controls }) => {
    const { about, narrower } = controls.scopes;
    const each = [controls, ...narrower].map(({ pause, breaker, ceiling }) => {
      return [ceiling.slots, pause.until, pause.openMs, breaker.phase, breaker.openUntil];
    });
    return [about, narrower.map(({ scope }) => scope), each];
  });
  return JSON.stringify(all);
}

function keyOf({ model, tier, credential }: Record<'model' | 'tier' | 'credential', unknown>) {
  return JSON.stringify([model, tier, credential]);
}

function partsOf({ pause, breaker, ceiling, lag }: NaiveLessons): unknown {
  return { pause, breaker, ceiling, lag };
}

function partsIn({ controls }: Limiter): unknown {
  return partsOf(controls);
}
