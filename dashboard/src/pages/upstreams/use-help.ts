import { useEffect, useState } from 'preact/hooks';

const NONE: ReadonlyMap<string, string> = new Map();

/** Descriptions of the fields. They load with the schema, which no other part of this page needs. */
export function useHelp(): ReadonlyMap<string, string> {
  const [help, setHelp] = useState(NONE);
  useEffect(() => {
    // This file contains the schemas anyway. If it is missing, as after an update, the form works without help texts.
    import('../configuration.ts').then(
      ({ UPSTREAM_HELP }) => setHelp(UPSTREAM_HELP),
      () => {},
    );
  }, []);
  return help;
}
