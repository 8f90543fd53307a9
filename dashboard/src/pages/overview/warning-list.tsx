import { warnings } from '../../feed.ts';
import { partitionName } from '../../model/decoded.ts';
import { When } from '../../ui/when.tsx';

/** List of what groups have warned of, the latest first. */
export function WarningList() {
  return (
    <section class="look" aria-labelledby="warnings-title">
      <h2 id="warnings-title">
        Recent warnings {warnings.value.length > 0 && <small>{warnings.value.length}</small>}
      </h2>
      {warnings.value.length === 0 ? (
        <p class="help">None since this page was opened. Each group keeps its last 100.</p>
      ) : (
        <ul tabIndex={0} aria-labelledby="warnings-title">
          {warnings.value.map(({ id, at, group, partition, kind, message }) => (
            <li key={id}>
              <When at={at} />
              <a href={`/admin/groups/${encodeURIComponent(group)}`}>{group}</a>
              <span title={kind}>
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
