import { exact, relative } from '../format.ts';
import { now } from '../feed.ts';

/** An instant relative to now, with date and time on hover. */
export function When({ at }: { readonly at: string }) {
  return (
    <time datetime={at} title={exact(at)}>
      {relative(at, now.value)}
    </time>
  );
}
