/**
 * Simulates calls that need slots of two groups, among calls that need one: how much of the slots is used, and how long each
 * of them waits. The core decides as it does in an object; the clock is virtual, so the figures are the same on every machine.
 */
import { play, SCENARIOS } from '../test/model/simulator/several-groups.ts';
import { percent, printTable } from './support/report.ts';

const rows = [false, true].flatMap((isShared) =>
  Object.values(SCENARIOS).flatMap((scenario) => {
    const { busy, returns, classes } = play(scenario, isShared);
    return classes.map(({ name, perSecond, meanWaitMs }, index) => [
      index === 0 ? `${scenario.name}${isShared ? ', a tenant each' : ''}` : '',
      index === 0 ? percent(busy) : '',
      index === 0 ? returns.toFixed(2) : '',
      name,
      `${perSecond.toFixed(2)} /s`,
      `${(meanWaitMs / 1_000).toFixed(2)} s`,
    ]);
  }),
);
printTable([['scenario', 'slots used', 'given back', 'calls', 'rate', 'mean wait'], ...rows]);
