import { count } from '../../format.ts';
import { atOnceOf } from '../../model/rates.ts';
import type { GroupView } from '../../model/status.ts';
import { Level } from '../../ui/level.tsx';
import { Figure } from './figure.tsx';

interface RateBarsProps {
  readonly rates: NonNullable<GroupView['rates']>;
  /** Configured burst. null means the default. */
  readonly burst: number | null;
}

export function RateBars({ rates, burst }: RateBarsProps) {
  return (
    <>
      {Object.entries(rates).map(([name, { limit, left }]) => {
        const atOnce = atOnceOf(name, limit, burst);
        const per = name.endsWith('d') ? 'per 24 hours' : 'per minute';
        return (
          <Figure name={`${name}, ${count(limit)} ${per}`} key={name}>
            <b>{count(Math.max(0, left))}</b> of {count(atOnce)} available now
            <Level part={left / atOnce} isBad={left <= 0} />
          </Figure>
        );
      })}
    </>
  );
}
