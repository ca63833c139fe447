-- 1: the sum of a warehouse's districts
SELECT CONCAT('w_id ', w_id, ': w_ytd is ', w_ytd, ', the sum of d_ytd ', COALESCE(total, 'NULL'))
FROM warehouse
LEFT JOIN (SELECT d_w_id, SUM(d_ytd) AS total FROM district WHERE d_w_id BETWEEN {first} AND {last} GROUP BY d_w_id) AS d
  ON d_w_id = w_id
WHERE w_id BETWEEN {first} AND {last} AND NOT (w_ytd <=> total)
ORDER BY w_id;
-- 2: the next order number of a district
SELECT CONCAT('d_w_id ', d_w_id, ', d_id ', d_id, ': d_next_o_id - 1 is ', COALESCE(d_next_o_id - 1, 'NULL'),
  ', the largest o_id ', COALESCE(last_order, 'NULL'), ', the largest no_o_id ', COALESCE(last_new, 'NULL'))
FROM district
LEFT JOIN (SELECT o_w_id, o_d_id, MAX(o_id) AS last_order FROM orders
           WHERE o_w_id BETWEEN {first} AND {last} GROUP BY o_w_id, o_d_id) AS o
  ON o_w_id = d_w_id AND o_d_id = d_id
LEFT JOIN (SELECT no_w_id, no_d_id, MAX(no_o_id) AS last_new FROM new_orders
           WHERE no_w_id BETWEEN {first} AND {last} GROUP BY no_w_id, no_d_id) AS n
  ON no_w_id = d_w_id AND no_d_id = d_id
WHERE d_w_id BETWEEN {first} AND {last}
  AND (NOT (d_next_o_id - 1 <=> last_order) OR NOT (COALESCE(last_new, last_order) <=> last_order))
ORDER BY d_w_id, d_id;
-- 3: no gap in the new orders of a district
SELECT CONCAT('no_w_id ', no_w_id, ', no_d_id ', no_d_id, ': no_o_id from ', MIN(no_o_id), ' to ', MAX(no_o_id),
  ' in ', COUNT(*), ' rows')
FROM new_orders
WHERE no_w_id BETWEEN {first} AND {last}
GROUP BY no_w_id, no_d_id
HAVING MAX(no_o_id) - MIN(no_o_id) + 1 <> COUNT(*)
ORDER BY no_w_id, no_d_id;
-- 4: the lines of a district
SELECT CONCAT('d_w_id ', d_w_id, ', d_id ', d_id, ': the sum of o_ol_cnt is ', COALESCE(wanted, 0), ', order_line has ',
  COALESCE(found, 0), ' rows')
FROM district
LEFT JOIN (SELECT o_w_id, o_d_id, SUM(o_ol_cnt) AS wanted FROM orders
           WHERE o_w_id BETWEEN {first} AND {last} GROUP BY o_w_id, o_d_id) AS o
  ON o_w_id = d_w_id AND o_d_id = d_id
LEFT JOIN (SELECT ol_w_id, ol_d_id, COUNT(*) AS found FROM order_line
           WHERE ol_w_id BETWEEN {first} AND {last} GROUP BY ol_w_id, ol_d_id) AS l
  ON ol_w_id = d_w_id AND ol_d_id = d_id
WHERE d_w_id BETWEEN {first} AND {last} AND COALESCE(wanted, 0) <> COALESCE(found, 0)
ORDER BY d_w_id, d_id;
-- 5: orders without a carrier are new orders
SELECT CONCAT('o_w_id ', o_w_id, ', o_d_id ', o_d_id, ', o_id ', o_id, ': o_carrier_id is ', COALESCE(o_carrier_id, 'NULL'),
  ', new_orders has ', IF(no_o_id IS NULL, 'no row', 'a row'))
FROM orders
LEFT JOIN new_orders ON no_w_id = o_w_id AND no_d_id = o_d_id AND no_o_id = o_id
WHERE o_w_id BETWEEN {first} AND {last} AND (o_carrier_id IS NULL) <> (no_o_id IS NOT NULL)
ORDER BY o_w_id, o_d_id, o_id;
-- 6: the lines of an order
SELECT CONCAT('o_w_id ', o_w_id, ', o_d_id ', o_d_id, ', o_id ', o_id, ': o_ol_cnt is ', COALESCE(o_ol_cnt, 'NULL'),
  ', order_line has ', COUNT(ol_number), ' rows')
FROM orders
LEFT JOIN order_line ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id
WHERE o_w_id BETWEEN {first} AND {last}
GROUP BY o_w_id, o_d_id, o_id, o_ol_cnt
HAVING NOT (o_ol_cnt <=> COUNT(ol_number))
ORDER BY o_w_id, o_d_id, o_id;
-- 7: lines without a delivery date are of orders without a carrier
SELECT CONCAT('ol_w_id ', ol_w_id, ', ol_d_id ', ol_d_id, ', ol_o_id ', ol_o_id, ', ol_number ', ol_number,
  ': ol_delivery_d is ', COALESCE(ol_delivery_d, 'NULL'), ', o_carrier_id ', COALESCE(o_carrier_id, 'NULL'))
FROM order_line
JOIN orders ON o_w_id = ol_w_id AND o_d_id = ol_d_id AND o_id = ol_o_id
WHERE ol_w_id BETWEEN {first} AND {last} AND (ol_delivery_d IS NULL) <> (o_carrier_id IS NULL)
ORDER BY ol_w_id, ol_d_id, ol_o_id, ol_number;
-- 8: the payments of a warehouse
SELECT CONCAT('w_id ', w_id, ': w_ytd is ', w_ytd, ', the sum of h_amount ', COALESCE(total, 'NULL'))
FROM warehouse
LEFT JOIN (SELECT h_w_id, SUM(h_amount) AS total FROM history WHERE h_w_id BETWEEN {first} AND {last} GROUP BY h_w_id) AS h
  ON h_w_id = w_id
WHERE w_id BETWEEN {first} AND {last} AND NOT (w_ytd <=> total)
ORDER BY w_id;
-- 9: the payments of a district
SELECT CONCAT('d_w_id ', d_w_id, ', d_id ', d_id, ': d_ytd is ', d_ytd, ', the sum of h_amount ', COALESCE(total, 'NULL'))
FROM district
LEFT JOIN (SELECT h_w_id, h_d_id, SUM(h_amount) AS total FROM history
           WHERE h_w_id BETWEEN {first} AND {last} GROUP BY h_w_id, h_d_id) AS h
  ON h_w_id = d_w_id AND h_d_id = d_id
WHERE d_w_id BETWEEN {first} AND {last} AND NOT (d_ytd <=> total)
ORDER BY d_w_id, d_id;
-- 10: the balance of a customer, from its deliveries and payments
SELECT CONCAT('c_w_id ', c_w_id, ', c_d_id ', c_d_id, ', c_id ', c_id, ': c_balance is ', c_balance,
  ', the sum of ol_amount ', COALESCE(delivered, 0), ', the sum of h_amount ', COALESCE(paid, 0))
FROM customer
LEFT JOIN (SELECT o_w_id, o_d_id, o_c_id, SUM(ol_amount) AS delivered
           FROM orders JOIN order_line ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id
           WHERE o_w_id BETWEEN {first} AND {last} AND ol_delivery_d IS NOT NULL GROUP BY o_w_id, o_d_id, o_c_id) AS o
  ON o_w_id = c_w_id AND o_d_id = c_d_id AND o_c_id = c_id
LEFT JOIN (SELECT h_c_w_id, h_c_d_id, h_c_id, SUM(h_amount) AS paid FROM history
           WHERE h_c_w_id BETWEEN {first} AND {last} GROUP BY h_c_w_id, h_c_d_id, h_c_id) AS h
  ON h_c_w_id = c_w_id AND h_c_d_id = c_d_id AND h_c_id = c_id
WHERE c_w_id BETWEEN {first} AND {last} AND NOT (c_balance <=> COALESCE(delivered, 0) - COALESCE(paid, 0))
ORDER BY c_w_id, c_d_id, c_id;
-- 11: the orders of a district that were delivered
SELECT CONCAT('d_w_id ', d_w_id, ', d_id ', d_id, ': ', COALESCE(all_orders, 0), ' orders, ', COALESCE(waiting, 0),
  ' new orders, ', COALESCE(deliveries, 0), ' deliveries since the load, {delivered} before it')
FROM district
LEFT JOIN (SELECT o_w_id, o_d_id, COUNT(*) AS all_orders FROM orders
           WHERE o_w_id BETWEEN {first} AND {last} GROUP BY o_w_id, o_d_id) AS o
  ON o_w_id = d_w_id AND o_d_id = d_id
LEFT JOIN (SELECT no_w_id, no_d_id, COUNT(*) AS waiting FROM new_orders
           WHERE no_w_id BETWEEN {first} AND {last} GROUP BY no_w_id, no_d_id) AS n
  ON no_w_id = d_w_id AND no_d_id = d_id
LEFT JOIN (SELECT c_w_id, c_d_id, SUM(c_delivery_cnt) AS deliveries FROM customer
           WHERE c_w_id BETWEEN {first} AND {last} GROUP BY c_w_id, c_d_id) AS c
  ON c_w_id = d_w_id AND c_d_id = d_id
WHERE d_w_id BETWEEN {first} AND {last}
  AND COALESCE(all_orders, 0) - COALESCE(waiting, 0) - COALESCE(deliveries, 0) <> {delivered}
ORDER BY d_w_id, d_id;
-- 12: the balance and the payments of a customer, from its deliveries
SELECT CONCAT('c_w_id ', c_w_id, ', c_d_id ', c_d_id, ', c_id ', c_id, ': c_balance + c_ytd_payment is ',
  COALESCE(c_balance + c_ytd_payment, 'NULL'), ', the sum of ol_amount ', COALESCE(delivered, 0))
FROM customer
LEFT JOIN (SELECT o_w_id, o_d_id, o_c_id, SUM(ol_amount) AS delivered
           FROM orders JOIN order_line ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id
           WHERE o_w_id BETWEEN {first} AND {last} AND ol_delivery_d IS NOT NULL GROUP BY o_w_id, o_d_id, o_c_id) AS o
  ON o_w_id = c_w_id AND o_d_id = c_d_id AND o_c_id = c_id
WHERE c_w_id BETWEEN {first} AND {last} AND NOT (c_balance + c_ytd_payment <=> COALESCE(delivered, 0))
ORDER BY c_w_id, c_d_id, c_id;
