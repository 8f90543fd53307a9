import { partitionName } from '../../../model/decoded.ts';
import { markerWords, type HistoryMarker } from '../../../model/history-charts.ts';
import { When } from '../../../ui/when.tsx';

/** Further entries are collapsed, because a week may have hundreds. */
const SHOWN_AT_FIRST = 8;

/** Events of the group in the range of the charts, newest first. */
export function MarkerList({ markers }: { readonly markers: readonly HistoryMarker[] }) {
  if (markers.length === 0) return null;
  const latestFirst = markers.toSorted((a, b) => Date.parse(b.at) - Date.parse(a.at));
  const earlier = latestFirst.slice(SHOWN_AT_FIRST);
  return (
    <section class="markers">
      <h3>Pauses, changes and resets</h3>
      <Items markers={latestFirst.slice(0, SHOWN_AT_FIRST)} />
      {earlier.length > 0 && (
        <details>
          <summary>{earlier.length} earlier</summary>
          <Items markers={earlier} />
        </details>
      )}
    </section>
  );
}

function Items({ markers }: { readonly markers: readonly HistoryMarker[] }) {
  return (
    <ul>
      {markers.map((marker) => (
        <li
          key={`${marker.at} ${marker.kind} ${marker.label} ${marker.partition}`}
          data-kind={marker.kind}
        >
          <When at={marker.at} /> <b>{markerWords(marker)}</b>
          {marker.partition !== null && (
            <>
              {' in '}
              <bdi>{partitionName(marker.partition)}</bdi>
            </>
          )}{' '}
          <small>{beyondLabel(marker)}</small>
        </li>
      ))}
    </ul>
  );
}

/** Detail of a marker, unless its label says the same. */
function beyondLabel({ label, detail }: HistoryMarker): string {
  return detail.startsWith(label) ? '' : detail;
}
