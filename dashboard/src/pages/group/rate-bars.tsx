import { count } from '../../format.ts';
import { atOnceOf } from '../../model/rates.ts';
import type { GroupView } from '../../model/status.ts';
import { Level } from '../../ui/level.tsx';
import { Figure } from './figure.tsx';

interface RateBarsProps {
  readonly rates: NonNullable<GroupView['rates']>;
  /** As configured; null: the default. */
  readonly burst: number | null;
}

/** Bars of what may go at once now, of each limit of requests and tokens. */
export function RateBars({ rates, burst }: RateBarsProps) {
  return (
    <>
      {Object.entries(rates).map(([name, { limit, left }]) => {
        const atOnce = atOnceOf(name, limit, burst);
        const per = name.endsWith('d') ? 'in 24 hours' : 'a minute';
        return (
          <Figure name={`${name}, ${count(limit)} ${per}`} key={name}>
            <b>{count(Math.max(0, left))}</b> of {count(atOnce)} may go now
            <Level part={left / atOnce} isBad={left <= 0} />
          </Figure>
        );
      })}
    </>
  );
}
