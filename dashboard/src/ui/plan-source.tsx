import type { Suggestion } from '../model/suggestions.ts';

/** Source and date of the limits of a plan. They may have changed since. */
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
