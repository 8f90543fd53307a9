import { exact, relative } from '../format.ts';
import { now } from '../feed.ts';

export function When({ at }: { readonly at: string }) {
  return (
    <time datetime={at} title={exact(at)}>
      {relative(at, now.value)}
    </time>
  );
}
