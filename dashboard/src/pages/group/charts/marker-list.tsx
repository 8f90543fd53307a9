import type { HistoryMarker } from '../../../model/history-charts.ts';
import { When } from '../../../ui/when.tsx';

/** What happened to the group in the time that the charts show, the latest first. */
export function MarkerList({ markers }: { readonly markers: readonly HistoryMarker[] }) {
  if (markers.length === 0) return null;
  return (
    <section class="markers">
      <h3>Pauses, changes and resets</h3>
      <ul>
        {markers
          .toSorted((a, b) => Date.parse(b.at) - Date.parse(a.at))
          .map((marker) => (
            <li key={`${marker.at} ${marker.kind} ${marker.label}`} data-kind={marker.kind}>
              <When at={marker.at} /> <b>{marker.label}</b>
              {Boolean(marker.detail) && <small> {marker.detail}</small>}
            </li>
          ))}
      </ul>
    </section>
  );
}
