import { warnings } from '../../feed.ts';
import { partitionName } from '../../model/decoded.ts';
import { When } from '../../ui/when.tsx';

/** Warnings of all groups, newest first. */
export function WarningList() {
  return (
    <section class="look" aria-labelledby="warnings-title">
      <h2 id="warnings-title">
        Recent warnings {warnings.value.length > 0 && <small>{warnings.value.length}</small>}
      </h2>
      {warnings.value.length === 0 ? (
        <p class="help">
          No warnings yet. Warnings also go to the log and to the{' '}
          <a href="/admin/setup#webhook">webhook</a>.
        </p>
      ) : (
        <ul tabIndex={0} aria-labelledby="warnings-title">
          {warnings.value.map(({ id, at, group, partition, kind, message, cleared_at }) => (
            <li key={id}>
              <When at={at} />
              <a href={`/admin/groups/${encodeURIComponent(group)}`}>{group}</a>
              <span title={`${kind}: ${message}`}>
                {cleared_at !== undefined && 'Resolved: '}
                {partition !== null && (
                  <>
                    <bdi>{partitionName(partition)}</bdi>:{' '}
                  </>
                )}
                <bdi>{message}</bdi>
              </span>
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}
