import type { Suggestion } from '../model/suggestions.ts';

/** Where the figures of a plan are from, and of when: they may have changed since. */
export function PlanSource({ plan: { source, date, note } }: { readonly plan: Suggestion }) {
  return (
    <>
      As of {date}
      {source !== null && (
        <>
          ,{' '}
          <a href={source} target="_blank" rel="noreferrer">
            {new URL(source).host}
          </a>
        </>
      )}
      .{note !== null && ` ${note}`}
    </>
  );
}
