// A script that finds texts with less contrast to their background than WCAG requires at level AA.
export const lowContrasts = `(() => {
  const channels = (color) => color.match(/[\\d.]+/g).map(Number);
  const luminance = ([r, g, b]) => {
    const [x, y, z] = [r, g, b].map((c) => (c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const behind = (element) => {
    const color = channels(getComputedStyle(element).backgroundColor);
    return color.length < 4 || color[3] > 0 ? color : behind(element.parentElement);
  };
  return [...document.querySelectorAll("body *")].filter((element) =>
    [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim()) &&
    element.getClientRects().length > 0
  ).flatMap((element) => {
    const [a, b] = [channels(getComputedStyle(element).color), behind(element)].map(luminance)
      .sort((one, other) => other - one);
    const ratio = (a + 0.05) / (b + 0.05);
    return ratio < 4.5 ? [element.innerText + " " + ratio.toFixed(2)] : [];
  });
})()`;
