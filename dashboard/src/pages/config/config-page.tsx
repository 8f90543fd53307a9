import { may } from '../../session.ts';
import { ExportSection } from './export-section.tsx';
import { ImportSection } from './import-section.tsx';
import './config.css';

/** Export and import of the whole configuration, with a review of the changes. */
export function ConfigPage() {
  if (!may('admin')) {
    return (
      <>
        <h1>Import / export</h1>
        <p>
          Exporting and importing the whole configuration, including hashes of keys, requires the
          admin role. Single groups are on the page <a href="/admin">Groups</a>.
        </p>
      </>
    );
  }
  return (
    <>
      <h1>Import / export</h1>
      <ExportSection />
      <ImportSection />
    </>
  );
}
