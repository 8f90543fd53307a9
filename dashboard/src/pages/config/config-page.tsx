import { may } from '../../session.ts';
import { ExportSection } from './export-section.tsx';
import { ImportSection } from './import-section.tsx';
import './config.css';

/** The whole configuration as one document: out, and in again after a look at what changes. */
export function ConfigPage() {
  if (!may('admin')) {
    return (
      <>
        <h1>Import / export</h1>
        <p>
          The whole configuration, hashes of keys included, is for the role admin. Single groups are
          at <a href="/admin">Groups</a>.
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
