/** Figures and history of a group, in a separate file, so that its slots and queue load first. */
export { GroupCharts } from './charts/group-charts.tsx';
export { Decisions } from './decisions/decisions.tsx';
export { GroupWarnings } from './group-warnings.tsx';
export { GroupFigures } from './group-figures.tsx';
